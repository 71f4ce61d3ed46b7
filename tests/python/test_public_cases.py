"""Cases from public reports of other projects, P1 to P15, each over every kind of array that is installed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import bilogp
import canon


def bfloat16(array):
    return array.astype(canon.dtype_named("bfloat16"))


def test_p1_same_bits_in_any_batch(arrays, rng):
    rows = bfloat16(3 * rng.standard_normal((64, 151936), dtype=np.float32))
    ids = rng.integers(0, 151936, 64)
    upstream = rng.standard_normal(64).astype(np.float32)
    logp, gradient = arrays.logp(rows, ids), arrays.gradient(rows, ids, upstream)
    for count in (1, 7, 64, 255, 256, 257):
        pick = rng.permutation(np.arange(count) % 64)
        assert canon.same_bits(arrays.logp(rows[pick], ids[pick]), logp[pick])
        assert canon.same_bits(arrays.gradient(rows[pick], ids[pick], upstream[pick]), gradient[pick])
    x, t = arrays.make(rows), arrays.make(ids)
    if arrays.name == "numpy":
        x, t = np.broadcast_to(x, (64, 64, 151936)), np.broadcast_to(t, (64, 64))
    else:
        x, t = x.expand(64, 64, 151936), t.expand(64, 64)
    many = arrays.back(bilogp.logp(x, t))  # 4096 rows
    assert all(canon.same_bits(part, logp) for part in many)


def test_p2_masked_but_one(arrays):
    for place in (0, 50000, 99999):
        row = np.full((1, 100000), -np.inf, np.float32)
        row[0, place] = 10
        assert arrays.logp(row, np.array([place])).tolist() == [0.0]
        assert not arrays.gradient(row, np.array([place]), np.ones(1, np.float32)).any()


@pytest.mark.parametrize("width", [151937, 2, 31, 33, 127, 129, 4095, 4097])
def test_p3_no_phantom_columns(arrays, width):
    row = np.full((2, width), -40, np.float32)
    row[:, width // 2] = 0
    logp = arrays.logp(row, np.full(2, width // 2))
    assert (logp <= 0).all() and (np.abs(logp) < max(1e-11, 2 * width * np.exp(-40.0))).all()


def test_p4_large_common_offsets(arrays, rng):
    for offset in (0, 100, 1e4, -1e4):
        logp = arrays.logp(np.full((1, 128256), offset, np.float32), np.array([77]))
        assert abs(logp[0] - np.float32(-np.log(128256.0))) <= 2 * np.spacing(np.float32(11.76))
    far = (rng.random((4, 3)) - 1e7).astype(np.float32)
    logp = arrays.logp(far, np.array([0, 1, 2, 0]))
    expected = [canon.exact(row, target) for row, target in zip(far, (0, 1, 2, 0))]
    assert np.allclose(logp, expected, rtol=0, atol=1e-6)


def test_p5_temperature(arrays):
    logits, ids = np.array([[2, 1, 0]], np.float32), np.array([1])
    x = arrays.make(logits)
    assert abs(arrays.back(bilogp.logp(x, arrays.make(ids), temperature=0.5))[0] + 2.142932) < 1e-6
    assert canon.same_bits(arrays.back(x), logits)
    for temperature in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="temperature is"):
            bilogp.logp(x, arrays.make(ids), temperature=temperature)


def test_p6_ignored_rows_are_not_read(arrays, rng):
    logits = rng.standard_normal((3, 5000)).astype(np.float32)
    ids, upstream = np.array([3, -100, 4]), np.ones(3, np.float32)
    plain = arrays.logp(logits[[0, 2]], ids[[0, 2]])
    logits[1] = np.resize([np.nan, np.inf, -np.inf], 5000)
    logp, gradient = arrays.logp(logits, ids), arrays.gradient(logits, ids, upstream)
    assert logp[1] == 0 and not gradient[1].any()
    assert canon.same_bits(logp[[0, 2]], plain)
    ignored = np.full(3, -100)
    assert not arrays.logp(logits, ignored).any()
    assert not arrays.gradient(logits, ignored, np.full(3, np.inf, np.float32)).any()


def test_p7_confident_rows_keep_their_gradient(arrays):
    for lead in (12.5, 15, 17.25):
        row = bfloat16(np.zeros((1, 32000), np.float32))
        row[0, 5] = lead
        gradient = arrays.gradient(row, np.array([5]), np.ones(1, np.float32)).astype(np.float64)
        exact = -np.expm1(canon.exact(row[0], 5))
        assert abs(gradient[0, 5] - exact) <= 0.005 * exact


def test_p8_any_upstream_gradient(arrays, rng):
    logits = rng.standard_normal((4, 6, 300)).astype(np.float32)
    ids = rng.integers(0, 300, (4, 6))
    ramp = np.arange(24, dtype=np.float32).reshape(4, 6)
    transposed = np.ascontiguousarray(ramp.T).T
    for upstream in (ramp, np.broadcast_to(np.float32(0.3), (4, 6)), transposed):
        gradient = arrays.gradient(logits, ids, upstream)
        for row in np.ndindex(4, 6):
            assert canon.same_bits(gradient[row], canon.gradient(logits[row], ids[row], upstream[row]))
    if arrays.name != "numpy":  # the strides as autograd makes them
        leaf = arrays.make(logits).requires_grad_()
        bilogp.logp(leaf, arrays.make(ids)).sum().backward()
        assert canon.same_bits(arrays.back(leaf.grad), arrays.gradient(logits, ids, np.ones((4, 6), np.float32)))
        leaf.grad = None
        (bilogp.logp(leaf, arrays.make(ids)).t() * arrays.make(ramp.T.copy())).sum().backward()
        assert canon.same_bits(arrays.back(leaf.grad), arrays.gradient(logits, ids, ramp))


def test_p9_views(arrays, rng):
    base = rng.standard_normal((8, 1001)).astype(np.float32)
    for dtype in (np.int32, np.int64):
        ids = rng.integers(0, 999, 9).astype(dtype)
        x, t = arrays.make(base), arrays.make(ids)
        for view, target in ((x[:, 1:-1], t[1:]), (x[::2], t[::2][:4]), (x[:, 1:-1][::2], t[1::2])):
            copies = np.ascontiguousarray(arrays.back(view)), np.ascontiguousarray(arrays.back(target))
            assert canon.same_bits(arrays.back(bilogp.logp(view, target)), arrays.logp(*copies))


def test_p10_logits_used_again(arrays, rng):
    """Without its entropy term: the logits' other use here is their own square."""
    if arrays.name == "numpy":
        logits = rng.standard_normal((2, 50)).astype(np.float32)
        before = logits.copy()
        arrays.gradient(logits, np.array([1, 2]), np.ones(2, np.float32))
        assert canon.same_bits(logits, before)
        return
    logits = rng.standard_normal((2, 50)).astype(np.float32)
    ids = arrays.make(np.array([1, 2]))
    leaf = arrays.make(logits).requires_grad_()
    (bilogp.logp(leaf, ids).sum() + leaf.square().sum()).backward()
    alone = arrays.gradient(logits, np.array([1, 2]), np.ones(2, np.float32))
    assert np.allclose(arrays.back(leaf.grad), alone + 2 * logits, rtol=1e-6, atol=1e-7)
    assert canon.same_bits(arrays.back(leaf), logits)

    inner = arrays.make(logits).requires_grad_() * 1
    squares = inner.square().sum()
    bilogp.logp(inner, ids, inplace_backward=True).sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squares.backward()


def test_p11_many_ids(arrays, rng):
    logits = bfloat16(rng.standard_normal((3, 32000), dtype=np.float32))
    ids = rng.integers(0, 32000, (3, 64))
    for k in (1, 6, 64):
        result = bilogp.logp(arrays.make(logits), arrays.make(ids[:, :k]), return_lse=True)
        assert tuple(result.lse.shape) == (3,)
        for column in range(k):
            assert canon.same_bits(arrays.back(result.logp)[:, column], arrays.logp(logits, ids[:, column]))


def test_p12_padded_vocabulary(arrays, rng):
    logits = rng.standard_normal((2, 262144), dtype=np.float32)
    logits[:, 201088:] = 50
    ids, upstream = np.array([5, 201087]), np.ones(2, np.float32)
    padded = arrays.logp(logits, ids, vocab_size=201088)
    assert canon.same_bits(padded, arrays.logp(logits[:, :201088], ids))
    gradient = arrays.gradient(logits, ids, upstream, vocab_size=201088)
    assert not gradient[:, 201088:].any()
    assert canon.same_bits(gradient[:, :201088], arrays.gradient(logits[:, :201088], ids, upstream))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_p13_accuracy(arrays, rng, dtype):
    logits = (5 * rng.standard_normal((64, 4000))).astype(canon.dtype_named(dtype))
    logits[:, 0] = np.linspace(20, -55, 64)
    ids = np.where(np.arange(64) % 2, 0, rng.integers(0, 4000, 64))
    logp = arrays.logp(logits, ids)
    exact = np.array([canon.exact(row, target) for row, target in zip(logits, ids)])
    assert logp.dtype == np.float32 and exact.min() < -69
    assert (np.abs(logp - exact) <= 1e-6 + 4 * 2.0**-23 * np.abs(exact)).all()


def test_p14_smallest_shapes(arrays):
    empty = arrays.logp(np.zeros((0, 7), np.float32), np.zeros(0, np.int64))
    assert empty.shape == (0,) and empty.dtype == np.float32
    assert arrays.gradient(np.zeros((2, 0, 7), np.float32), np.zeros((2, 0), int), np.zeros((2, 0), "f4")).shape == (
        2,
        0,
        7,
    )
    assert arrays.logp(np.full((1, 9), 2, np.float32), np.array([3])).shape == (1,)
    single = np.array([[3.5], [-1e30]], np.float32)
    assert arrays.logp(single, np.zeros(2, int)).tolist() == [0, 0]
    assert not arrays.gradient(single, np.zeros(2, int), np.ones(2, np.float32)).any()


SCORE = """
import sys, numpy as np, bilogp
x = np.linspace(-4, 4, 3 * 5000, dtype=np.float32).reshape(3, 5000)
sys.stdout.write(bilogp.logp(x, np.array([0, 2500, 4999])).tobytes().hex())
"""


def test_p15_processes_share_a_cold_store(tmp_path):
    environment = os.environ | {"BILOGP_CACHE_DIR": str(tmp_path)}
    start = [sys.executable, "-c", SCORE]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    processes = [subprocess.Popen(start, **pipes) for _ in range(8)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, outputs
    assert len(set(outputs)) == 1 and outputs[0][1] == ""

    store = tmp_path / "kernels-v1.db"
    with sqlite3.connect(store) as database:
        table = next(
            name
            for (name,) in database.execute("select name from sqlite_master where type = 'table'")
            if any(column[2] == "BLOB" for column in database.execute(f"pragma table_info({name})"))
        )
        column = [c[1] for c in database.execute(f"pragma table_info({table})") if c[2] == "BLOB"][-1]
        largest = f"(select max(length({column})) from {table})"
        changed = database.execute(
            f"update {table} set {column} = substr({column}, 1, 100) where length({column}) = {largest}"
        )
        assert changed.rowcount >= 1
    again = subprocess.run(start, capture_output=True, text=True, env=environment)
    assert (again.returncode, again.stdout) == (0, outputs[0][0])
