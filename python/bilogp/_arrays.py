"""New arrays, and streams, for the array types that the extension does not know itself."""

from __future__ import annotations

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
    import numpy

    return numpy.empty(shape, dtype=dtype)


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


_counted_words: dict[int, Any] = {}  # cupy's, by device


def counted_words(array: Any) -> Any:
    """Memory on a GPU for the bad ids that a backward pass finds again; None where the extension has its own."""
    family = _families.name_of(array)
    if family == "torch":
        from . import _torch

        return _torch.counted_words(array)
    if family == "cupy" and array.device.id not in _counted_words:
        import cupy

        with cupy.cuda.Device(array.device.id):
            _counted_words[array.device.id] = cupy.zeros(4, dtype="int64")
            cupy.cuda.get_current_stream().synchronize()  # other streams use them too
    return _counted_words[array.device.id] if family == "cupy" else None


def address(words: Any) -> int | None:
    if words is None:
        return None
    return int(words.data_ptr() if hasattr(words, "data_ptr") else words.data.ptr)


def note_written(array: Any) -> None:
    """Lets autograd refuse what it saved of a tensor that the extension has written to."""
    if _families.name_of(array) == "torch":
        import torch

        torch.autograd.graph.increment_version(array)


def logp_on_cupy(logits: Any, *arguments: Any) -> Any:
    return _core.logp(logits, *arguments, current_stream(logits))  # type: ignore[call-arg]
