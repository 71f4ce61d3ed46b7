"""OpenRLHF: ``log_probs_from_logits``."""

from __future__ import annotations

import importlib
from typing import Any

from .. import logp
from . import replace_everywhere


def log_probs_from_logits(logits: Any, labels: Any, temperature: float = 1.0) -> Any:
    """OpenRLHF's function of that name, with its arguments, but it does not divide the caller's logits in place.

    The answer is float32 whatever the logits are.
    """
    return logp(logits, labels, temperature=temperature)


def install() -> list[str]:
    """Makes OpenRLHF's models use it. Returns the modules that were changed."""
    importlib.import_module("openrlhf.models.utils")
    return replace_everywhere("openrlhf", log_probs_from_logits)
