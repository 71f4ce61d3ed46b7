"""Which code serves an array type. A type is looked at once; its module decides, and nothing is imported for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import _core

Logp = Callable[..., Any]

# The implementation of `logp` for a type, with all arguments in the order of bilogp.logp.
logp_of: dict[type, Logp] = {}


def _root_modules(kind: type) -> set[str]:
    return {base.__module__.partition(".")[0] for base in kind.__mro__}


def name_of(array: Any) -> str:
    """'numpy', 'torch', 'jax', 'cupy', or 'other' for anything else with __dlpack__."""
    roots = _root_modules(type(array))
    if roots & {"jax", "jaxlib"}:
        return "jax"
    for name in ("torch", "cupy", "numpy"):
        if name in roots:
            return name
    return "other"


def find(array: Any) -> Logp:
    """Remembers and returns the implementation for the type of `array`."""
    # What torch.compile cannot look at in some releases, it need not: the type's modules.
    is_torch = isinstance(array, getattr(sys.modules.get("torch"), "Tensor", ()))
    family = "torch" if is_torch else name_of(array)
    implementation: Logp
    if family == "torch":
        from . import _torch

        implementation = _torch.logp
    elif family == "jax":
        from . import _jax

        implementation = _jax.logp
    elif family == "cupy":
        from . import _arrays

        implementation = _arrays.logp_on_cupy
    else:
        implementation = _core.logp
    logp_of[type(array)] = implementation
    return implementation
