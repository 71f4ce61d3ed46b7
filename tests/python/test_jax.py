"""jax on a CPU: jit, grad, vmap, and the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import canon

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import bilogp  # noqa: E402

if jax.default_backend() != "cpu":
    pytest.skip("jax is on a GPU here", allow_module_level=True)


@pytest.fixture
def logits(rng):
    return rng.standard_normal((3, 4, 500)).astype(np.float32)


@pytest.fixture
def ids(rng):
    return rng.integers(0, 500, (3, 4)).astype(np.int32)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_eager_and_jit(logits, ids, dtype):
    stored = logits.astype(canon.dtype_named(dtype))
    expected = bilogp.logp(stored, ids, temperature=0.7, vocab_size=499, return_lse=True, validate=False)
    bilogp.take_errors()

    def score(x, t):
        return bilogp.logp(x, t, temperature=0.7, vocab_size=499, return_lse=True, validate=False)

    for function in (score, jax.jit(score)):
        result = function(jnp.asarray(stored), jnp.asarray(ids))
        assert isinstance(result, bilogp.LogpResult) and isinstance(result.logp, jax.Array)
        for one, other in zip(result, expected):
            assert canon.same_bits(np.asarray(one), other)
    bilogp.take_errors()


def test_gradient(logits, ids):
    upstream = np.arange(12, dtype=np.float32).reshape(3, 4)
    expected = bilogp.logp_backward(logits, ids, upstream, temperature=0.7)

    def loss(x):
        return (bilogp.logp(x, jnp.asarray(ids), temperature=0.7) * upstream).sum()

    for function in (jax.grad(loss), jax.jit(jax.grad(loss))):
        assert canon.same_bits(np.asarray(function(jnp.asarray(logits))), expected)


def test_vmap_and_temperatures(logits, ids):
    temperatures = np.array([[0.5], [1.0], [2.0]], np.float32)
    expected = bilogp.logp(logits, ids, temperature=np.broadcast_to(temperatures, (3, 4)))
    over = jax.vmap(lambda x, t, temperature: bilogp.logp(x, t, temperature=temperature))
    assert canon.same_bits(np.asarray(over(logits, ids, temperatures)), expected)
    assert canon.same_bits(np.asarray(bilogp.logp(jnp.asarray(logits), ids, temperature=temperatures)), expected)


def test_every_result_is_an_array_of_jax(logits, ids):
    stored, upstream = logits.astype(canon.dtype_named("bfloat16")), np.ones((3, 4), np.float32)
    x, t, g = map(jnp.asarray, (stored, ids, upstream))
    shards = [
        [bilogp.logp_partial(a[..., b : b + 250], i, b, 500) for b in (0, 250)] for a, i in ((x, t), (stored, ids))
    ]
    ours, numpys = (
        [
            *bilogp.logp_forward(a, i),
            bilogp.logp_backward(a, i, u),
            *bilogp.logp_with_gradient(a, i, u),
            *s[1][2:],
            *bilogp.logp_finish(s, i, 500),
        ]
        for a, i, u, s in ((x, t, g, shards[0]), (stored, ids, upstream, shards[1]))
    )
    assert len(ours) == 12
    for one, other in zip(ours, numpys):
        assert isinstance(one, jax.Array) and one.dtype == other.dtype
        assert canon.same_bits(np.asarray(one), other)


def test_results_are_not_copied(logits):
    """jax takes over memory that begins at a multiple of 64 bytes."""
    from bilogp import _arrays

    x = jnp.asarray(logits)
    memory = _arrays.empty_like(x, x.shape, "float32")
    assert _arrays.as_given(x, memory)[0].unsafe_buffer_pointer() == memory.ctypes.data


def test_jax_arrays_are_never_written(logits, ids):
    x, g = jnp.asarray(logits), jnp.ones((3, 4), jnp.float32)
    before = np.array(x)
    for options in ({"inplace": True}, {"out": jnp.zeros_like(x)}):
        with pytest.raises(ValueError, match="read-only"):
            bilogp.logp_backward(x, jnp.asarray(ids), g, **options)
    with pytest.raises(ValueError, match="read-only"):
        bilogp.logp(logits, ids, out=g)
    assert canon.same_bits(np.asarray(x), before) and not np.asarray(options["out"]).any()


def test_arrays_on_a_gpu_are_refused(logits, ids):
    class OnGpu:
        __module__ = "jaxlib"

        def __dlpack_device__(self):
            return (2, 0)

    for call in (lambda: bilogp.logp_forward(OnGpu(), ids), lambda: bilogp.logp(logits, OnGpu())):
        with pytest.raises(bilogp.Unsupported, match="is a jax array on a GPU"):
            call()


def test_only_logp_is_traced(logits, ids):
    with pytest.raises(ValueError, match="logits, of type .*Tracer, cannot be read where it lies"):
        jax.jit(bilogp.logp_forward)(logits, ids)


def test_many_ids(logits, rng):
    many = rng.integers(0, 500, (3, 4, 6)).astype(np.int32)
    assert canon.same_bits(np.asarray(bilogp.logp(jnp.asarray(logits), many)), bilogp.logp(logits, many))
    with pytest.raises(bilogp.Unsupported, match="K target ids"):
        jax.grad(lambda x: bilogp.logp(x, many).sum())(jnp.asarray(logits))


def test_errors(logits, ids):
    x = jnp.asarray(logits)
    for kind, words, call in [
        (IndexError, "row 0 is 500", lambda: jax.block_until_ready(bilogp.logp(x, ids * 0 + 500))),
        (TypeError, "logits is int32", lambda: bilogp.logp(jnp.zeros((2, 3), jnp.int32), jnp.zeros(2, jnp.int32))),
        (TypeError, "target_ids is float32", lambda: bilogp.logp(x, jnp.zeros((3, 4)))),
        (ValueError, "temperature is 0", lambda: bilogp.logp(x, ids, temperature=0)),
        (ValueError, r"shape \[4, 3\]", lambda: bilogp.logp(x, ids.T)),
        (RuntimeError, "out is given", lambda: bilogp.logp(x, ids, out=np.zeros((3, 4), "f4"))),
        (RuntimeError, "numerics", lambda: bilogp.logp(x, ids, numerics="native")),
        (TypeError, "return_lse is 1;", lambda: bilogp.logp(x, ids, return_lse=1)),
        (TypeError, "validate is 1;", lambda: bilogp.logp(x, ids, validate=1)),
        (TypeError, "ignore_index is 1.5;", lambda: bilogp.logp(x, ids, 1.5)),
        (ValueError, "vocab_size is -1;", lambda: bilogp.logp(x, ids, vocab_size=-1)),
        (TypeError, "vocab_size is 2.5;", lambda: bilogp.logp(x, ids, vocab_size=2.5)),
        (TypeError, "temperature is of type str", lambda: bilogp.logp(x, ids, temperature="0.7")),
        (ValueError, "temperature is 0", lambda: bilogp.logp(x, ids, temperature=np.float32(0))),
        (ValueError, r"temperature has the shape \[7\]", lambda: bilogp.logp(x, ids, temperature=np.ones(7, "f4"))),
        (TypeError, "target_ids is of type list", lambda: bilogp.logp(x, ids.tolist())),
    ]:
        with pytest.raises(bilogp.Error, match=words) as raised:
            call()
        assert isinstance(raised.value, kind)


def test_ids_of_more_than_32_bits_are_bad_ids(logits, ids):
    """jax's own conversion would wrap them into the vocabulary."""
    far = ids.astype(np.int64) + 2**32
    with pytest.raises(bilogp.TargetOutOfRange):
        jax.block_until_ready(bilogp.logp(jnp.asarray(logits), far))
    assert np.isnan(np.asarray(bilogp.logp(jnp.asarray(logits), far, validate=False))).all()
    bilogp.take_errors()


def test_bad_ids_are_counted_once_per_step(logits, ids):
    ids = ids.copy()
    ids[1, 2] = 700
    bilogp.take_errors()
    gradient = jax.grad(lambda x: bilogp.logp(x, ids, validate=False).sum())(jnp.asarray(logits))
    assert not np.asarray(gradient)[1, 2].any()
    assert bilogp.take_errors() == (1, 6, 700)


def test_errors_inside_jit_have_our_sentence(logits, ids):
    """As jax's exception: the compiled program raises it where no code of this package runs."""
    with pytest.raises(Exception, match="row 0 is 500; expected 0 to 499"):
        jax.block_until_ready(jax.jit(bilogp.logp)(jnp.asarray(logits), ids * 0 + 500))
