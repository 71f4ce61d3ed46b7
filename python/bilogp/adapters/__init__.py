"""Stand-ins for the log-probability functions of training frameworks: same arguments, same shapes, bilogp's bits.

    from bilogp.adapters.trl import selective_log_softmax        # instead of trl.trainer.utils
    from bilogp.adapters.verl import logprobs_from_logits         # instead of verl.utils.torch_functional
    from bilogp.adapters.openrlhf import log_probs_from_logits    # instead of openrlhf.models.utils

or, without touching the framework's code, ``bilogp.adapters.trl.install()`` before its trainer is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def replace_everywhere(package: str, function: Callable[..., Any]) -> list[str]:
    """Puts `function` where modules of `package` that are loaded have something of its name; says where."""
    name = function.__name__
    changed = []
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == package and callable(vars(module).get(name)):
            setattr(module, name, function)
            changed.append(module_name)
    return sorted(changed)
