"""Bad input: each a bilogp.Error that is also the built-in exception that fits, and one sentence."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import bilogp

X = np.zeros((2, 8), np.float32)
T = np.array([1, 2])


def read_only(shape):
    array = np.zeros(shape, np.float32)
    array.flags.writeable = False
    return array


def unaligned():
    return np.zeros(2 * 8 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(2, 8)


CASES = {
    "list": (TypeError, "of type list; expected an array", lambda: bilogp.logp([[1.0]], T)),
    "none": (TypeError, "of type NoneType; expected an array", lambda: bilogp.logp(X, None)),
    "float64": (TypeError, r"logits is float64; .*astype\('float32'\)", lambda: bilogp.logp(X.astype("f8"), T)),
    "object": (TypeError, "logits is object", lambda: bilogp.logp(X.astype(object), T)),
    "integer logits": (TypeError, "logits is int64", lambda: bilogp.logp(X.astype("i8"), T)),
    "big-endian": (TypeError, "other byte order", lambda: bilogp.logp(X.astype(">f4"), T)),
    "float ids": (TypeError, "target_ids is float32; expected int32 or int64", lambda: bilogp.logp(X, T.astype("f4"))),
    "unsigned ids": (TypeError, "target_ids is uint8", lambda: bilogp.logp(X, T.astype("u1"))),
    "big-endian ids": (TypeError, "other byte order", lambda: bilogp.logp(X, T.astype(">i8"))),
    "one dimension": (ValueError, "1 dimension", lambda: bilogp.logp(X[0], T[0])),
    "vocabulary stride": (ValueError, "stride 2 in its last", lambda: bilogp.logp(X[:, ::2], T)),
    "unaligned": (ValueError, "multiple of its elements' size", lambda: bilogp.logp(unaligned(), T)),
    "no columns": (ValueError, "0 columns", lambda: bilogp.logp(X[:, :0], T)),
    "shape of ids": (ValueError, r"target_ids has the shape \[3\]", lambda: bilogp.logp(X, np.zeros(3, int))),
    "id too large": (IndexError, "row 1 is 8; expected 0 to 7", lambda: bilogp.logp(X, np.array([0, 8]))),
    "id negative": (IndexError, "row 0 is -1", lambda: bilogp.logp(X, np.array([-1, 8]))),
    "temperature 0": (ValueError, "temperature is 0", lambda: bilogp.logp(X, T, temperature=0)),
    "temperature -1": (ValueError, "temperature is -1", lambda: bilogp.logp(X, T, temperature=-1.0)),
    "temperature nan": (ValueError, "temperature is nan", lambda: bilogp.logp(X, T, temperature=float("nan"))),
    "temperature inf": (ValueError, "temperature is inf", lambda: bilogp.logp(X, T, temperature=float("inf"))),
    "temperature text": (TypeError, "temperature is of type str", lambda: bilogp.logp(X, T, temperature="hot")),
    "temperature dtype": (TypeError, "temperature is float64", lambda: bilogp.logp(X, T, temperature=np.ones(2))),
    "temperature shape": (ValueError, "shape", lambda: bilogp.logp(X, T, temperature=np.ones(3, "f4"))),
    "vocab_size 0": (ValueError, "vocab_size is 0", lambda: bilogp.logp(X, T, vocab_size=0)),
    "vocab_size 9": (ValueError, "vocab_size is 9", lambda: bilogp.logp(X, T, vocab_size=9)),
    "vocab_size -1": (ValueError, "vocab_size is -1", lambda: bilogp.logp(X, T, vocab_size=-1)),
    "vocab_size 2.0": (TypeError, "vocab_size is 2.0", lambda: bilogp.logp(X, T, vocab_size=2.0)),
    "validate 1": (TypeError, "validate is 1", lambda: bilogp.logp(X, T, validate=1)),
    "ignore_index 1.5": (TypeError, "ignore_index is 1.5", lambda: bilogp.logp(X, T, 1.5)),
    "ignore_index huge": (ValueError, "at most 64 bits", lambda: bilogp.logp(X, T, 2**70)),
    "numerics": (ValueError, 'numerics is "fast"', lambda: bilogp.logp(X, T, numerics="fast")),
    "numerics 3": (TypeError, "numerics is 3", lambda: bilogp.logp(X, T, numerics=3)),
    "native": (RuntimeError, "native numerics", lambda: bilogp.logp(X, T, numerics="native")),
    "read-only out": (ValueError, "out is read-only", lambda: bilogp.logp(X, T, out=read_only(2))),
    "out dtype": (TypeError, "out is float64", lambda: bilogp.logp(X, T, out=np.zeros(2))),
    "out float16": (ValueError, "out is float16", lambda: bilogp.logp(X, T, out=np.zeros(2, "f2"))),
    "out shape": (ValueError, r"out has the shape \[3\]; expected \[2\]", lambda: bilogp.logp(X, T, out=np.zeros(3, "f4"))),
    "out overlaps": (ValueError, "shares memory", lambda: bilogp.logp(X, T, out=X[:, 0])),
    "out stride 0": (
        ValueError, "stride 0", lambda: bilogp.logp(X, T, out=np.lib.stride_tricks.as_strided(X[0, :1], (2,), (0,)))
    ),
    "in place, read-only": (
        ValueError, "read-only", lambda: bilogp.logp_backward(read_only((2, 8)), T, X[:, 0].copy(), inplace=True)
    ),
    "both passes, in place and out": (
        ValueError, "both given", lambda: bilogp.logp_with_gradient(X, T, X[:, 0], inplace=True, out=X)
    ),
    "both passes, K ids": (ValueError, "target_ids", lambda: bilogp.logp_with_gradient(X, T[:, None], X[:, 0].copy())),
    "in place and out": (
        ValueError, "both given", lambda: bilogp.logp_backward(X, T, X[:, 0], inplace=True, out=np.zeros((2, 8), "f4"))
    ),
    "grad dtype": (TypeError, "grad_logp is float64", lambda: bilogp.logp_backward(X, T, np.ones(2))),
    "shard bounds": (ValueError, "shard", lambda: bilogp.logp_partial(X, T, 4, 8)),
    "shards that do not cover": (
        ValueError, "shards", lambda: bilogp.logp_finish([bilogp.logp_partial(X[:, :4], T, 0, 8)], T, 8)
    ),
    "no shards": (ValueError, "shards is empty", lambda: bilogp.logp_finish([], T, 8)),
    "unknown target": (ValueError, "is unknown; expected one of", lambda: bilogp.warmup(100, target="tpu")),
    "unknown operator": (ValueError, "logp_forward", lambda: bilogp.warmup(100, operators="softmax")),
    "unknown dtype": (ValueError, "bfloat16", lambda: bilogp.warmup(100, "float64")),
    "unknown device": (ValueError, 'the device is "tpu"', lambda: bilogp.take_errors("tpu")),
    "threads": (ValueError, "thread", lambda: bilogp.set_num_threads(-1)),
    "threads 2.5": (TypeError, "threads is 2.5; expected a whole", lambda: bilogp.set_num_threads(2.5)),
    "threads 2^40": (ValueError, "at most 32 bits", lambda: bilogp.set_num_threads(2**40)),
    "temperature huge": (ValueError, "temperature is too large", lambda: bilogp.logp(X, T, temperature=10**400)),
    "temperature 0-d": (ValueError, r"^temperature has the shape \[\]", lambda: bilogp.logp(X, T, temperature=np.array(1, "f4"))),
    "masked": (TypeError, "masked array", lambda: bilogp.logp(np.ma.masked_array(X, X == 0), T)),
    "return_lse 1": (TypeError, "return_lse is 1; expected True or False", lambda: bilogp.logp(X, T, return_lse=1)),
    "inplace_backward none": (
        TypeError, "inplace_backward is None; expected True", lambda: bilogp.logp(X, T, inplace_backward=None)
    ),
    "inplace 1": (TypeError, "inplace is 1; expected True", lambda: bilogp.logp_backward(X, T, X[:, 0].copy(), inplace=1)),
    "shard_begin 0.5": (TypeError, "shard_begin is 0.5", lambda: bilogp.logp_partial(X, T, 0.5, 8)),
    "full_vocab text": (TypeError, "full_vocab is '8'", lambda: bilogp.logp_partial(X, T, 0, "8")),
    "full_vocab 8.0": (
        TypeError, "full_vocab is 8.0", lambda: bilogp.logp_finish([bilogp.logp_partial(X, T, 0, 8)], T, 8.0)
    ),
    "shards 1": (TypeError, "no sequence of bilogp.Shard", lambda: bilogp.logp_finish(1, T, 8)),
    "shards [1]": (TypeError, "no sequence of bilogp.Shard", lambda: bilogp.logp_finish([1], T, 8)),
    "node_count": (TypeError, "end is None; expected a whole number", lambda: bilogp.node_count(0, None, 8)),
    "warmup 2.5": (TypeError, "size is 2.5; expected a whole number", lambda: bilogp.warmup(2.5)),
    "warmup [none]": (TypeError, "size is None; expected a whole number", lambda: bilogp.warmup([None])),
    "warmup -1": (ValueError, "vocab_size is -1", lambda: bilogp.warmup(-1)),
    "warmup dtype": (TypeError, "the dtype is .*float32.*; expected a name", lambda: bilogp.warmup(8, np.float32)),
    "warmup target": (TypeError, "target is None; expected a name", lambda: bilogp.warmup(8, target=None)),
    "contract target": (TypeError, "target is None; expected a name", lambda: bilogp.contract_id(target=None)),
    "device number": (ValueError, "at most 32 bits", lambda: bilogp.take_errors("cuda:99999999999")),
    "operator list": (KeyError, "there is no operator", lambda: bilogp.kernel_registry.get_op([])),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    kind, words, call = CASES[name]
    with pytest.raises(bilogp.Error, match=words) as raised:
        call()
    assert isinstance(raised.value, kind)
    assert "\n" not in str(raised.value) and str(raised.value)


def test_bad_ids_without_validation():
    ids = np.array([1, 99])
    result = bilogp.logp(X, ids, validate=False)
    assert result[0] == np.float32(-np.log(8)) and np.isnan(result[1])
    assert bilogp.take_errors() == bilogp.TargetErrors(1, 1, 99)
    assert bilogp.take_errors() == (0, -1, 0)


@pytest.mark.parametrize("columns", [8, 200_000])
def test_bad_ids_are_counted_once_per_step(arrays, columns):
    """By the forward pass; the backward pass finds them again."""
    device = "cuda" if arrays.name == "torch-cuda" else "cpu"
    logits, ids, upstream = np.zeros((3, columns), np.float32), np.array([1, columns + 9, -5]), np.ones(3, np.float32)
    bilogp.take_errors(device)
    for _ in range(2):
        gradient = arrays.gradient(logits, ids, upstream, validate=False)
        assert gradient[0].any() and not gradient[1:].any()
        assert bilogp.take_errors(device) == (2, 1, columns + 9)
    x, t = arrays.make(logits), arrays.make(ids)
    state = bilogp.logp_forward(x, t, validate=False).row_state
    gradient = arrays.back(bilogp.logp_backward(x, t, arrays.make(upstream), state, validate=False))
    assert gradient[0].any() and not gradient[1:].any()
    assert bilogp.take_errors(device).count == 2
    bilogp.logp_with_gradient(x, t, arrays.make(upstream), validate=False)
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
    assert bilogp.take_errors(device) == (2, 1, columns + 9)


def test_warnings_arrive_in_python(tmp_path):
    """A store that cannot be used: one warning, through `warnings` and `logging`, and the right answer."""
    code = (
        "import logging, warnings, numpy as np, bilogp\n"
        "logging.basicConfig(format='logged by %(name)s')\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    out = bilogp.logp(np.zeros((2, 8), np.float32), np.array([1, 2]))\n"
        "assert out[0] == np.float32(-np.log(8))\n"
        "assert [w.category for w in seen] == [bilogp.BilogpWarning], seen\n"
        "print(seen[0].message)\n"
    )
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    environment = os.environ | {"BILOGP_CACHE_DIR": str(blocked / "store")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "store" in done.stdout and "logged by bilogp" in done.stderr
