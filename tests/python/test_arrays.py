"""What is accepted as an array and how: strides, dtypes, read-only and mapped memory, shapes, outputs."""

from __future__ import annotations

import numpy as np
import pytest

import bilogp
import canon
import samples


@pytest.fixture
def logits(rng):
    return (4 * rng.standard_normal((4, 6, 100))).astype(np.float32)


@pytest.fixture
def ids(rng):
    return rng.integers(0, 100, (4, 6))


def test_leading_dimensions_are_kept(arrays, logits, ids):
    result = bilogp.logp(arrays.make(logits), arrays.make(ids))
    assert tuple(result.shape) == (4, 6)
    flat = arrays.logp(logits.reshape(24, 100), ids.reshape(24))
    assert canon.same_bits(arrays.back(result).reshape(24), flat)


def test_views_are_scored_in_place(arrays, logits, ids):
    x, t = arrays.make(logits), arrays.make(ids)
    for view, target in [
        (x[:, :-1], t[:, 1:]),
        (x[::2], t[::2]),
        (x[:, :, 7:50], t[:, :] % 43),
        (x[1:3, 2:4], t[1:3, 2:4]),
        (x[2], t[2]),
    ]:
        copy = np.ascontiguousarray(arrays.back(view)), np.ascontiguousarray(arrays.back(target))
        assert canon.same_bits(arrays.back(bilogp.logp(view, target)), arrays.logp(*copy))


def test_negative_strides(logits, ids):
    assert canon.same_bits(bilogp.logp(logits[::-1], ids[::-1]), bilogp.logp(logits, ids)[::-1])


def test_nothing_is_copied(logits, ids):
    """A row that another thread of control would change is the row that is read: addresses, not copies."""
    view = logits[:, :-1]
    before = bilogp.logp(view, ids[:, :-1])
    logits[0, 0, :] = 0
    after = bilogp.logp(view, ids[:, :-1])
    assert after[0, 0] == np.float32(-np.log(100)) and before[0, 0] != after[0, 0]


def test_read_only_and_mapped(ids, tmp_path):
    rows = samples.rollouts()
    assert not rows["logits"].flags.writeable
    assert isinstance(rows["logits"], np.memmap)
    expected = samples.expected("bf16 T=1")["logp"]
    assert (canon.bits(bilogp.logp(rows["logits"], rows["target_ids"])) == expected).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("id_dtype", ["int32", "int64"])
def test_dtypes(arrays, logits, ids, dtype, id_dtype):
    stored = logits.astype(canon.dtype_named(dtype))
    result = arrays.logp(stored, ids.astype(id_dtype))
    assert result.dtype == np.float32
    assert canon.same_bits(result, arrays.logp(stored.astype(np.float32), ids))
    gradient = arrays.gradient(stored, ids, np.ones((4, 6), np.float32))
    assert gradient.dtype == stored.dtype


def test_result_type_is_the_arrays_own(arrays, logits, ids):
    x = arrays.make(logits)
    result = bilogp.logp(x, arrays.make(ids), return_lse=True)
    assert isinstance(result, bilogp.LogpResult)
    assert type(result.logp) is type(result.lse) is type(x)
    assert tuple(result.lse.shape) == (4, 6)


def test_many_ids_per_row(arrays, logits, rng):
    many = rng.integers(0, 100, (4, 6, 5))
    result = bilogp.logp(arrays.make(logits), arrays.make(many), return_lse=True)
    assert tuple(result.logp.shape) == (4, 6, 5)
    for k in range(5):
        one = bilogp.logp(arrays.make(logits), arrays.make(many[..., k]), return_lse=True)
        assert canon.same_bits(arrays.back(result.logp)[..., k], arrays.back(one.logp))
        assert canon.same_bits(arrays.back(result.lse), arrays.back(one.lse))


def test_out(arrays, logits, ids):
    out = arrays.make(np.zeros((4, 6, 2), np.float32))[..., 0]
    result = bilogp.logp(arrays.make(logits), arrays.make(ids), out=out)
    assert result is out
    assert canon.same_bits(np.ascontiguousarray(arrays.back(out)), arrays.logp(logits, ids))


def test_temperature_per_row(arrays, logits, ids):
    constant = arrays.logp(logits, ids, temperature=np.full((4, 6), 0.7, np.float32))
    assert canon.same_bits(constant, arrays.logp(logits, ids, temperature=0.7))
    mixed = np.linspace(0.5, 2, 24, dtype=np.float32).reshape(4, 6)
    result = arrays.logp(logits, ids, temperature=mixed)
    for row in np.ndindex(4, 6):
        expected, _, _ = canon.score(logits[row], ids[row], temperature=float(mixed[row]))
        assert canon.same_bits(result[row].reshape(1), expected)


def test_temperature_as_numpy_scalar(logits, ids):
    for scalar in (np.float32(0.7), np.float64(0.7), 2, np.int64(2)):
        assert canon.same_bits(
            bilogp.logp(logits, ids, temperature=scalar), bilogp.logp(logits, ids, temperature=float(scalar))
        )


def test_gradient_into_out_and_in_place(logits, ids):
    upstream = np.ones((4, 6), np.float32)
    state = bilogp.logp_forward(logits, ids).row_state
    expected = bilogp.logp_backward(logits, ids, upstream, state)
    out = np.empty_like(logits)
    assert bilogp.logp_backward(logits, ids, upstream, state, out=out) is out
    assert canon.same_bits(out, expected)
    assert canon.same_bits(bilogp.logp_backward(logits, ids, upstream), expected)
    assert bilogp.logp_backward(logits, ids, upstream, state, inplace=True) is logits
    assert canon.same_bits(logits, expected)


def test_both_passes_in_one(arrays, logits, ids, rng):
    """Whole batches, single rows, and rows so long and few that they are cut."""
    for columns in (100, 70_000):
        logits = rng.standard_normal((4, 6, columns), dtype=np.float32)
        upstream = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
        for rows in (slice(None), slice(1, 2)):
            x, t, g = (arrays.make(array[rows]) for array in (logits, ids, upstream))
            forward = bilogp.logp_forward(x, t, temperature=0.7)
            result = bilogp.logp_with_gradient(x, t, g, temperature=0.7)
            assert isinstance(result, bilogp.GradientResult) and type(result.grad_logits) is type(x)
            gradient = bilogp.logp_backward(x, t, g, forward.row_state, temperature=0.7)
            for one, other in zip(result, (forward.logp, forward.lse, gradient)):
                assert canon.same_bits(arrays.back(one), arrays.back(other))
            out = arrays.make(np.zeros_like(logits[rows]))
            assert bilogp.logp_with_gradient(x, t, g, temperature=0.7, out=out).grad_logits is out
            assert bilogp.logp_with_gradient(x, t, g, temperature=0.7, inplace=True).grad_logits is x
            assert canon.same_bits(arrays.back(out), arrays.back(x)) and canon.same_bits(
                arrays.back(out), arrays.back(gradient)
            )


class OnlyDlpack:
    """An array of some other library, with nothing but the standard's two methods."""

    def __init__(self, array, versioned):
        self.array = array
        self.versioned = versioned

    def __dlpack__(self, **arguments):
        if not self.versioned and "max_version" in arguments:
            raise TypeError("no such argument")
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("versioned", [True, False])
def test_anything_with_dlpack(logits, ids, versioned):
    result = bilogp.logp(OnlyDlpack(logits, versioned), OnlyDlpack(ids, versioned))
    assert canon.same_bits(result, bilogp.logp(logits, ids))


class OnDevice(OnlyDlpack):
    """Says that it lies on a GPU, and what it was asked."""

    def __init__(self, array, versioned):
        super().__init__(array, versioned)
        self.asked = []

    def __dlpack__(self, **arguments):
        self.asked.append(arguments)
        if not self.versioned and "max_version" in arguments:
            raise TypeError("no such argument")
        raise BufferError("asked enough")

    def __dlpack_device__(self):
        return (2, 0)


@pytest.mark.parametrize("versioned", [True, False])
def test_a_device_is_asked_for_no_other_stream(logits, ids, versioned):
    """Its library would wait for the legacy default stream, which no capture of a graph allows."""
    array = OnDevice(logits, versioned)
    with pytest.raises(ValueError, match=r"logits, of type OnDevice, cannot be read where it lies \(asked enough\)"):
        bilogp.logp(array, ids)
    assert [arguments["stream"] for arguments in array.asked] == [-1] * (1 if versioned else 2)


def test_memory_is_given_back(logits, ids):
    """Results and capsules are owned by Python alone: a thousand calls hold no more than one."""
    import sys

    before = sys.getrefcount(logits), sys.getrefcount(ids)
    for _ in range(1000):
        bilogp.logp(logits, ids, return_lse=True)
        bilogp.logp(OnlyDlpack(logits, True), OnlyDlpack(ids, False))
    assert (sys.getrefcount(logits), sys.getrefcount(ids)) == before
