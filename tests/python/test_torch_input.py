"""torch: what is refused, in which sentence, and what reading and writing tensors where they lie takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bilogp  # noqa: E402


def test_refusals(logits, ids):
    many = ids[..., None].expand(3, 5, 4)
    with torch.no_grad():
        assert bilogp.logp(logits, many).shape == (3, 5, 4)
    out = torch.zeros_like(ids, dtype=torch.float32)
    for kind, words, call in [
        (RuntimeError, "K target ids", lambda: bilogp.logp(logits, many)),
        (ValueError, "out is given", lambda: bilogp.logp(logits, ids, out=out)),
        (ValueError, "out requires", lambda: bilogp.logp(logits.detach(), ids, out=out.clone().requires_grad_())),
        (TypeError, "logits is float64", lambda: bilogp.logp(logits.detach().double(), ids)),
        (TypeError, "target_ids is float32", lambda: bilogp.logp(logits.detach(), ids.float())),
        (RuntimeError, "torch.func", lambda: torch.func.grad(lambda x: bilogp.logp(x, ids).sum())(logits.detach())),
    ]:
        with pytest.raises(bilogp.Error, match=words) as raised:
            call()
        assert isinstance(raised.value, kind)


@pytest.mark.parametrize("recorded", [False, True], ids=["direct", "recorded"])
def test_bad_input_in_the_same_sentence(logits, ids, recorded):
    """Whether or not a gradient is recorded, which autograd and torch would refuse in words of their own."""
    x = logits if recorded else logits.detach()
    tensor = "expected a torch.Tensor" if recorded else "expected an array"
    for kind, words, call in [
        (TypeError, "validate is 1; expected None, True or False", lambda: bilogp.logp(x, ids, validate=1)),
        (TypeError, "validate is 'no'; expected None, True or False", lambda: bilogp.logp(x, ids, validate="no")),
        (TypeError, "temperature is of type str", lambda: bilogp.logp(x, ids, temperature="0.7")),
        (TypeError, "temperature is of type NoneType", lambda: bilogp.logp(x, ids, temperature=None)),
        (TypeError, "temperature is float64", lambda: bilogp.logp(x, ids, temperature=torch.ones(3, 5).double())),
        (ValueError, r"temperature has the shape \[4\]", lambda: bilogp.logp(x, ids, temperature=torch.ones(4))),
        (ValueError, "vocab_size is -1; expected a positive", lambda: bilogp.logp(x, ids, vocab_size=-1)),
        (ValueError, "vocab_size is 0", lambda: bilogp.logp(x, ids, vocab_size=0)),
        (TypeError, "vocab_size is 2.5; expected a whole number", lambda: bilogp.logp(x, ids, vocab_size=2.5)),
        (TypeError, "ignore_index is 1.5; expected a whole number", lambda: bilogp.logp(x, ids, 1.5)),
        (ValueError, "ignore_index is .*; expected a number of at most 64", lambda: bilogp.logp(x, ids, 2**70)),
        (TypeError, "numerics is 3", lambda: bilogp.logp(x, ids, numerics=3)),
        (TypeError, "return_lse is 1; expected True or", lambda: bilogp.logp(x, ids, return_lse=1)),
        (TypeError, "inplace_backward is 0; expected True or", lambda: bilogp.logp(x, ids, inplace_backward=0)),
        (TypeError, f"target_ids is of type list; {tensor}", lambda: bilogp.logp(x, ids.tolist())),
        (TypeError, f"target_ids is of type NoneType; {tensor}", lambda: bilogp.logp(x, None)),
        (TypeError, "out is of type ndarray; expected a", lambda: bilogp.logp(x, ids, out=np.zeros((3, 5), "f4"))),
        (TypeError, "target_ids is bool", lambda: bilogp.logp(x, ids.bool())),
        (TypeError, "logits is complex64", lambda: bilogp.logp(x + 0j, ids)),
        (ValueError, "cannot be read where it lies", lambda: bilogp.logp(x.to_sparse(), ids)),
        (ValueError, "cannot be read where it lies", lambda: bilogp.logp(x.to("meta"), ids)),
        (ValueError, "cannot be read where it lies", lambda: bilogp.logp(x, ids.to("meta"))),
    ]:
        with pytest.raises(bilogp.Error, match=words) as raised:
            call()
        assert isinstance(raised.value, kind), words
        assert "\n" not in str(raised.value)


def negated(tensor):
    """The same numbers in a view that torch negates when it reads it: a conjugate's imaginary part."""
    view = torch.complex(torch.zeros_like(tensor), -tensor).conj().imag
    assert view.is_neg() and torch.equal(view, tensor)
    return view


def test_negated_views(logits, ids, device):
    """As upstream gradients of losses with complex numbers; elsewhere they are refused, never read with the wrong sign."""
    upstream = torch.rand(3, 5, device=device) + 0.5
    logp = bilogp.logp(logits, ids)
    one, other = (torch.autograd.grad(logp, logits, g, retain_graph=True)[0] for g in (upstream, negated(upstream)))
    assert torch.equal(one, other)
    x = logits.detach()
    for call in (
        lambda: bilogp.logp_backward(x, ids, negated(upstream)),
        lambda: bilogp.logp(x, ids, temperature=negated(upstream)),
        lambda: bilogp.logp(x, ids, out=negated(upstream)),
    ):
        with pytest.raises(ValueError, match="resolve_neg"):
            call()


def test_out_of_numpys_logits_may_not_require_a_gradient():
    with pytest.raises(ValueError, match="out requires a gradient"):
        bilogp.logp(np.zeros((2, 8), np.float32), np.array([1, 2]), out=torch.zeros(2, requires_grad=True))


def test_gradients_written_by_hand_bump_the_version(logits, ids):
    x, upstream = logits.detach(), torch.ones(3, 5, device=logits.device)
    state = bilogp.logp_forward(x, ids).row_state
    out = torch.zeros_like(x)
    versions = out._version, x._version
    bilogp.logp_backward(x, ids, upstream, state, out=out)
    bilogp.logp_backward(x, ids, upstream, state, inplace=True)
    assert out._version > versions[0] and x._version > versions[1]
    assert torch.equal(out, x)


def test_out_bumps_its_version(logits, ids):
    out = torch.zeros_like(ids, dtype=torch.float32)
    before = out._version
    assert bilogp.logp(logits.detach(), ids, out=out) is out
    assert out._version > before


WITHOUT_EXCHANGE = "BILOGP_TEST_WITHOUT_EXCHANGE"


@pytest.mark.skipif(WITHOUT_EXCHANGE in os.environ, reason="this is the other run")
def test_torch_without_an_exchange_table():
    """Older releases, whose tensors come through __dlpack__ alone: the tests of torch and of arrays once more."""
    here = Path(__file__).parent
    names = ("test_arrays.py", "test_errors.py", "test_torch.py", "test_torch_cuda.py", "test_torch_input.py")
    files = [here / name for name in names]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "not compile and not export and not opcheck",
    ]
    done = subprocess.run([*command, *files], env=os.environ | {WITHOUT_EXCHANGE: "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
