"""New arrays, and streams, for the array types that the extension does not know itself."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from . import _core, _families
from .errors import Unsupported


def empty_like(model: Any, shape: Sequence[int], dtype: str) -> Any:
    """An array with undefined content, of the type and on the device of `model`."""
    family = _families.name_of(model)
    if family == "torch":  # a torch without DLPack's exchange table
        import torch

        return torch.empty(tuple(shape), dtype=getattr(torch, dtype), device=model.device)
    if family == "cupy":
        import cupy

        with cupy.cuda.Device(model.device.id):
            return cupy.empty(shape, dtype=cupy_dtype(dtype))
    namespace = getattr(model, "__array_namespace__", None)
    if namespace is not None and family != "jax":
        xp = namespace()
        return xp.empty(tuple(shape), dtype=getattr(xp, dtype), device=model.device)
    if model.__dlpack_device__()[0] != 1:
        raise Unsupported(
            f"results for a {type(model).__name__} on a device cannot be allocated; expected an array of torch or cupy"
        )
    return _aligned(shape, dtype)


def _aligned(shape: Sequence[int], dtype: str) -> Any:
    """numpy's, beginning where jax takes memory over without a copy."""
    import numpy

    alignment = 64
    bytes_wanted = math.prod(shape) * numpy.dtype(dtype).itemsize
    memory = numpy.empty(bytes_wanted + alignment, numpy.uint8)
    begin = -memory.ctypes.data % alignment
    return memory[begin : begin + bytes_wanted].view(dtype).reshape(shape)


def cupy_dtype(dtype: str) -> Any:
    if dtype != "bfloat16":
        return dtype
    import ml_dtypes

    return ml_dtypes.bfloat16


def current_stream(array: Any) -> int | None:
    """The native handle of the stream that work on `array` is queued on; None lets the extension ask the array."""
    family = _families.name_of(array)
    if family == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(array.device.id):
            return int(cupy.cuda.get_current_stream().ptr)
    if family == "torch":
        import torch

        if array.is_cuda and not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
            return int(torch.cuda.current_stream(array.device).cuda_stream)
    return None


def as_given(model: Any, *results: Any) -> tuple[Any, ...]:
    """Results of the extension as arrays of the kind of `model`; jax's are made of memory that is full already."""
    if _families.name_of(model) != "jax":
        return results
    import jax

    return tuple(jax.device_put(result, may_alias=True) for result in results)


def maximum(arrays: Sequence[Any]) -> Any:
    """Of the shards' target logits, element by element."""
    result = arrays[0]
    for array in arrays[1:]:
        if hasattr(array, "maximum"):  # torch
            result = result.maximum(array)
        else:
            import numpy

            result = numpy.maximum(result, array)  # cupy's stays cupy's
    return as_given(arrays[0], result)[0]


def note_written(array: Any) -> None:
    """Lets autograd refuse what it saved of a tensor that the extension has written to."""
    if _families.name_of(array) == "torch":
        import torch

        torch.autograd.graph.increment_version(array)


def logp_on_cupy(logits: Any, *arguments: Any) -> Any:
    return _core.logp(logits, *arguments, current_stream(logits))  # type: ignore[call-arg]
