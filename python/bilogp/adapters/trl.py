"""TRL: ``selective_log_softmax``."""

from __future__ import annotations

import importlib
from typing import Any

from .. import logp
from ..errors import InvalidArgument
from . import replace_everywhere


def selective_log_softmax(logits: Any, index: Any, temperature: float = 1.0, row_mask: Any = None) -> Any:
    """TRL's function of that name, with its arguments; the answer is float32 whatever the logits are.

    index: ``(...)``, or ``(..., K)`` for K answers per row (forward only).
    row_mask: the shape of `index`; rows where it is 0 are not even read, and answer 0.
    """
    if temperature <= 0:
        raise InvalidArgument("temperature must be positive")
    if row_mask is not None:
        index = index.masked_fill(row_mask == 0, -100)
    return logp(logits, index, temperature=temperature)


def install() -> list[str]:
    """Makes TRL's trainers use it. Returns the modules that were changed."""
    importlib.import_module("trl.trainer.utils")
    return replace_everywhere("trl", selective_log_softmax)
