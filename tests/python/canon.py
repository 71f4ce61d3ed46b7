"""The slow reference of the C++ tests, one row at a time, and comparisons by bits."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
STORAGE = {"float32": 0, "float16": 1, "bfloat16": 2}
QUIET_NAN = 0x7FC00000


@cache
def _library() -> ctypes.CDLL:
    path = os.environ.get("BILOGP_TEST_REFERENCE", str(REPOSITORY / "build/release/libbilogp_reference_c.so"))
    return ctypes.CDLL(path)


def dtype_named(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def bits(array: np.ndarray) -> np.ndarray:
    """The array's bits, every NaN as the contract's quiet one (payloads of upstream NaNs are open)."""
    array = np.ascontiguousarray(array)
    size = array.dtype.itemsize
    words = array.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[size]).copy()
    if array.dtype.kind in "fV":
        words[np.isnan(array.astype(np.float32))] = {2: 0xFFFF, 4: QUIET_NAN}[size]
    return words


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and bool((bits(a) == bits(b)).all())


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _wide(row: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(row.astype(np.float32))


def score(row, ids, *, vocab_size=-1, ignore_index=-100, temperature=1.0):
    """logp (one per id), lse and row state of one row."""
    wide, ids = _wide(row), np.atleast_1d(np.asarray(ids, np.int64)).copy()
    logp, lse, state = np.zeros(ids.size, np.float32), np.zeros(1, np.float32), np.zeros(2, np.int32)
    _library().reference_score(
        _pointer(wide), ctypes.c_int64(wide.size), _pointer(ids), ctypes.c_int64(ids.size), ctypes.c_int64(vocab_size),
        ctypes.c_int64(ignore_index), ctypes.c_float(temperature), _pointer(logp), _pointer(lse), _pointer(state),
    )  # fmt: skip
    return logp, lse[0], state


def gradient(row, target, grad_logp, *, vocab_size=-1, ignore_index=-100, temperature=1.0):
    """The gradient row in the row's dtype."""
    wide = _wide(row)
    out = np.zeros(wide.size, np.uint32)
    _library().reference_gradient(
        _pointer(wide), ctypes.c_int64(wide.size), ctypes.c_int64(int(target)), ctypes.c_float(grad_logp),
        ctypes.c_int64(vocab_size), ctypes.c_int64(ignore_index), ctypes.c_float(temperature), _pointer(out),
    )  # fmt: skip
    stored = np.zeros(wide.size, np.uint32)
    _library().reference_narrow(STORAGE[row.dtype.name], _pointer(out), ctypes.c_int64(out.size), _pointer(stored))
    return stored.view(np.float32) if row.dtype == np.float32 else stored.astype(np.uint16).view(row.dtype)


def exact(row, target, temperature=1.0) -> float:
    """In binary64, from the stored values, without cancellation."""
    x = np.asarray(row).astype(np.float64) / np.float64(np.float32(temperature))
    top = x.max()
    return float((x[target] - top) - np.log(np.exp(x - top).sum()))
