"""verl: ``logprobs_from_logits``."""

from __future__ import annotations

import importlib
from typing import Any

from .. import logp
from . import replace_everywhere


def logprobs_from_logits(logits: Any, labels: Any, inplace_backward: bool = True) -> Any:
    """verl's function of that name, with its arguments and its default: the gradient is written over the logits.

    The answer is float32 whatever the logits are; divide by the temperature before, as verl does, or call
    ``bilogp.logp(logits, labels, temperature=...)`` and leave the logits as they are.
    """
    return logp(logits, labels, inplace_backward=inplace_backward)


def install() -> list[str]:
    """Makes verl's workers use it. Returns the modules that were changed."""
    importlib.import_module("verl.utils.torch_functional")
    return replace_everywhere("verl", logprobs_from_logits)
