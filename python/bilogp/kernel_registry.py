"""Operators under the names that RL code already calls.

op = bilogp.kernel_registry.get_op("batch_invariant_logp")
logp = op(logits, target_ids, ignore_index=-100, validate=False)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._api import logp
from .errors import UnknownOperator


def batch_invariant_logp(logits: Any, target_ids: Any, ignore_index: int = -100, validate: bool | None = None) -> Any:
    """``bilogp.logp`` with the four arguments of the callers' convention.

    validate: True checks the ids before the launch, False does not, None checks on a CPU only. An unchecked bad id is
        answered NaN with a zero gradient, and counted (``bilogp.take_errors``); nothing is read out of bounds.
    """
    return logp(logits, target_ids, ignore_index, validate=validate)


_OPERATORS: dict[str, Callable[..., Any]] = {"batch_invariant_logp": batch_invariant_logp}


def names() -> tuple[str, ...]:
    return tuple(_OPERATORS)


def get_op(name: str) -> Callable[..., Any]:
    """The operator of that name; an unknown one is a KeyError that names the known ones."""
    operator = _OPERATORS.get(name) if isinstance(name, str) else None
    if operator is None:
        raise UnknownOperator(f'there is no operator "{name}"; expected one of {", ".join(_OPERATORS)}')
    return operator
