"""Answers by bits: the carried real rows, the hand-made cases, and random rows against the slow reference."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bilogp
import canon
import samples

DTYPES = ("float32", "float16", "bfloat16")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "temperature"), [("bf16 T=1", 1.0), ("bf16 T=0.7", 0.7)])
def test_real_rows(arrays, dtype, name, temperature):
    rows, answers = samples.rollouts(), samples.expected(name)
    logits = rows["logits"].astype(canon.dtype_named(dtype))
    result = bilogp.logp_forward(arrays.make(logits), arrays.make(rows["target_ids"]), temperature=temperature)
    assert (canon.bits(arrays.back(result.logp)) == answers["logp"]).all()
    assert (canon.bits(arrays.back(result.lse)) == answers["lse"]).all()
    state = arrays.back(result.row_state)
    assert (state[:, 0].view(np.uint32) == answers["node_m"]).all()
    assert (state[:, 1] == answers["node_E"]).all()


@pytest.mark.parametrize(("name", "temperature"), [("bf16 T=1", 1.0), ("bf16 T=0.7", 0.7)])
def test_real_gradients(arrays, name, temperature):
    rows = samples.rollouts()
    logits = rows["logits"].astype(np.float32)
    gradient = arrays.gradient(logits, rows["target_ids"], np.ones(48, np.float32), temperature=temperature)
    crcs = [zlib.crc32(row.tobytes()) for row in gradient]
    assert crcs == samples.expected(name)["gradient_crc32"].tolist()


@pytest.mark.parametrize("case", samples.hand_cases(), ids=lambda case: case["name"].replace(" ", "-"))
def test_hand_case(arrays, case):
    logits, ids = case["logits"][None], np.array([case["target"]])
    options = {"vocab_size": case["vocab_size"], "temperature": case["temperature"][0]}
    temperature = np.float32(case["temperature"][0])
    if not 2.0**-20 <= temperature <= 2.0**20:  # a scalar is refused; an entry of a tensor poisons its row
        options["temperature"] = arrays.make(case["temperature"])
    result = bilogp.logp_forward(arrays.make(logits), arrays.make(ids), validate=False, **options)
    assert canon.same_bits(arrays.back(result.logp), case["logp"])
    assert canon.same_bits(arrays.back(result.lse), case["lse"])
    assert arrays.back(result.row_state).tolist() == [[case["node_m"].view(np.int32)[0], case["node_E"]]]
    gradient = bilogp.logp_backward(
        arrays.make(logits), arrays.make(ids), arrays.make(case["g"]), result.row_state, validate=False, **options
    )
    assert canon.same_bits(arrays.back(gradient)[0], case["grad"])
    bilogp.take_errors("cuda" if arrays.name == "torch-cuda" else "cpu")


def float16_of(bits):
    return float(np.array(bits, np.uint16).view(np.float16))


# (hypothesis's own floats of 16 bits are wider ones, most of which it throws away.)
every_float16 = st.integers(0, 0xFFFF).map(float16_of)
values = every_float16 | st.floats(-30, 30, width=32) | st.sampled_from([0.0, -0.0, -1e4, 6e4, -np.inf])
rows_of_logits = hnp.array_shapes(min_dims=2, max_dims=2, max_side=70).flatmap(
    lambda shape: hnp.arrays(np.float32, shape, elements=values)
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), logits=rows_of_logits, dtype=st.sampled_from(DTYPES), ids=st.sampled_from(["int32", "int64"]))
def test_any_row(arrays, data, logits, dtype, ids):
    logits = logits.astype(canon.dtype_named(dtype))
    rows, columns = logits.shape
    vocab_size = data.draw(st.integers(1, columns))
    target = st.integers(0, vocab_size - 1) | st.just(-100)
    targets = np.array(data.draw(st.lists(target, min_size=rows, max_size=rows)), ids)
    temperature = data.draw(st.sampled_from([1.0, 0.7, 2.0, 0.001]))
    grads = np.array(data.draw(st.lists(st.sampled_from([1.0, 0.0, -2.5, 1e-30]), min_size=rows, max_size=rows)), "f4")
    options = {"vocab_size": vocab_size, "temperature": temperature}
    result = bilogp.logp_forward(arrays.make(logits), arrays.make(targets), **options)
    gradient = arrays.gradient(logits, targets, grads, **options)
    for row in range(rows):
        logp, lse, state = canon.score(logits[row], targets[row], **options)
        assert canon.same_bits(arrays.back(result.logp)[row : row + 1], logp)
        assert canon.same_bits(arrays.back(result.lse)[row], lse)
        assert (arrays.back(result.row_state)[row] == state).all()
        expected = canon.gradient(logits[row], targets[row], grads[row], **options)
        assert canon.same_bits(gradient[row], expected)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), columns=st.integers(2, 600), seed=st.integers(0, 2**32 - 1))
def test_any_shards(arrays, data, columns, seed):
    generator = np.random.default_rng(seed)
    logits = (5 * generator.standard_normal((3, columns))).astype(np.float32)
    ids = generator.integers(0, columns, 3)
    cuts = sorted(data.draw(st.sets(st.integers(1, columns - 1), max_size=4)))
    bounds = [0, *cuts, columns]
    whole = bilogp.logp_forward(arrays.make(logits), arrays.make(ids))
    shards = [
        bilogp.logp_partial(arrays.make(logits[:, a:b]), arrays.make(ids), a, columns)
        for a, b in zip(bounds, bounds[1:])
    ]
    joined = bilogp.logp_finish(shards[::-1], arrays.make(ids), columns)
    for one, other in zip(whole, joined):
        assert canon.same_bits(arrays.back(one), arrays.back(other))
    upstream = arrays.make(np.ones(3, np.float32))
    gradient = arrays.back(bilogp.logp_backward(arrays.make(logits), arrays.make(ids), upstream, whole.row_state))
    for a, b in zip(bounds, bounds[1:]):
        part = bilogp.logp_backward(
            arrays.make(logits[:, a:b]), arrays.make(ids), upstream, joined.row_state, shard_begin=a, full_vocab=columns
        )
        assert canon.same_bits(arrays.back(part), gradient[:, a:b])
