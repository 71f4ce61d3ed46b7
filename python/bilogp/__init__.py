"""bilogp: selected-token log-probabilities with one answer, to the bit.

    logp = bilogp.logp(logits, target_ids)

Same bits whatever the batch, strides, tiles, tensor-parallel shards, threads, instruction set or device. Arrays of
numpy, torch, cupy, jax, or anything with ``__dlpack__``; torch's autograd, compile and export work.
"""

from __future__ import annotations

from ._interpreter import core as _core  # isort: skip  # first: before another module fails in other words
from . import kernel_registry
from ._api import (
    contract_id,
    logp,
    num_threads,
    runtime_info,
    set_num_threads,
    take_errors,
    warmup,
)
from ._passes import logp_backward, logp_forward, logp_with_gradient
from ._results import (
    ForwardResult,
    GradientResult,
    KernelInfo,
    LogpResult,
    RuntimeInfo,
    Shard,
    TargetErrors,
    WarmupReport,
)
from ._shards import logp_finish, logp_partial, node_count
from .errors import (
    BilogpWarning,
    CompileFailed,
    DeviceError,
    Error,
    FileError,
    InvalidArgument,
    OutOfMemory,
    StoreError,
    TargetOutOfRange,
    UnknownOperator,
    Unsupported,
    WrongType,
)

__version__: str = _core.version()

__all__ = [
    "BilogpWarning",
    "CompileFailed",
    "DeviceError",
    "Error",
    "FileError",
    "ForwardResult",
    "GradientResult",
    "InvalidArgument",
    "KernelInfo",
    "LogpResult",
    "OutOfMemory",
    "RuntimeInfo",
    "Shard",
    "StoreError",
    "TargetErrors",
    "TargetOutOfRange",
    "UnknownOperator",
    "Unsupported",
    "WarmupReport",
    "WrongType",
    "contract_id",
    "kernel_registry",
    "logp",
    "logp_backward",
    "logp_finish",
    "logp_forward",
    "logp_partial",
    "logp_with_gradient",
    "node_count",
    "num_threads",
    "runtime_info",
    "set_num_threads",
    "take_errors",
    "warmup",
]
