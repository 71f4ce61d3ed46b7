"""torch: autograd, compile, export, autocast, memory, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from arrays import answers

torch = pytest.importorskip("torch")

import bilogp  # noqa: E402


def operator_arguments(logits, ids):
    return logits, ids, None, 0.7, -100, 590, 0, "portable"


def test_both_paths_have_the_same_bits(logits, ids):
    with torch.no_grad():
        direct = bilogp.logp(logits, ids, temperature=0.7, vocab_size=590)
    recorded = bilogp.logp(logits, ids, temperature=0.7, vocab_size=590)
    operator = torch.ops.bilogp.logp(*operator_arguments(logits, ids))[0]
    assert torch.equal(direct, recorded) and torch.equal(direct, operator)
    assert not direct.requires_grad and recorded.requires_grad and operator.requires_grad
    one, other = (torch.autograd.grad(y.sum(), logits)[0] for y in (recorded, operator))
    assert torch.equal(one, other)


def test_opcheck(logits, ids):
    arguments = operator_arguments(logits, ids)
    torch.library.opcheck(torch.ops.bilogp.logp.default, arguments)
    row_state = torch.ops.bilogp.logp(*arguments)[2]
    backward = (logits.detach(), ids, row_state, torch.ones_like(ids, dtype=torch.float32), *arguments[2:6], "portable")
    torch.library.opcheck(torch.ops.bilogp.logp_backward.default, backward)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_whole(logits, ids, dynamic):
    def loss(x, t):
        result = bilogp.logp(x, t, temperature=0.7, return_lse=True)
        return result.logp, (result.logp * 2).sum()

    compiled = torch.compile(loss, fullgraph=True, dynamic=dynamic, backend="aot_eager" if dynamic else "inductor")
    logp, total = compiled(logits, ids)
    total.backward()
    expected, gradient = answers(logits, ids, temperature=0.7)
    assert torch.equal(logp, expected)
    leaf = logits.detach().requires_grad_()
    (bilogp.logp(leaf, ids, temperature=0.7) * 2).sum().backward()
    assert torch.equal(logits.grad, leaf.grad)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_with_temperatures(logits, ids, device, dynamic):
    """And a vocabulary's size that is computed from a shape."""
    temperatures = torch.tensor([[0.5], [0.7], [2.0]], device=device)

    def score(x, t, temperature):
        return bilogp.logp(x, t, temperature=temperature, vocab_size=x.shape[-1] - 10, validate=False)

    ids = torch.where(ids < 590, ids, 0)
    compiled = torch.compile(score, fullgraph=True, dynamic=dynamic, backend="aot_eager")(logits, ids, temperatures)
    eager = score(logits, ids, temperatures)
    assert torch.equal(compiled, eager)
    one, other = (torch.autograd.grad(y.sum(), logits)[0] for y in (compiled, eager))
    assert torch.equal(one, other)


def test_compile_may_be_the_first_call():
    """Before any eager call has looked at the tensors' type, in a process that imported torch later."""
    code = (
        "import bilogp, torch\n"
        "f = torch.compile(lambda x, t: bilogp.logp(x, t), fullgraph=True, backend='aot_eager')\n"
        "x, t = torch.randn(3, 50), torch.tensor([1, 2, 3])\n"
        "assert torch.equal(f(x, t), bilogp.logp(x, t))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_export(logits, ids):
    class Scorer(torch.nn.Module):
        def forward(self, x, t):
            return bilogp.logp(x, t, vocab_size=590)

    x = logits.detach()
    rows = torch.export.Dim("rows", min=2, max=100)
    program = torch.export.export(Scorer(), (x, ids), dynamic_shapes=({0: rows}, {0: rows}))
    more = torch.cat([x, x])
    assert torch.equal(program.module()(more, torch.cat([ids, ids]))[:3], bilogp.logp(x, ids, vocab_size=590))


def test_autocast_changes_nothing(logits, ids, device):
    with torch.autocast(device, dtype=torch.bfloat16):
        inside, gradient = answers(logits, ids)
    outside, other = answers(logits, ids)
    assert torch.equal(inside, outside) and torch.equal(gradient, other)
    assert inside.dtype == torch.float32


def test_backward_twice(logits, ids):
    logp = bilogp.logp(logits, ids)
    first, second = (torch.autograd.grad(logp.sum(), logits, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_activation_checkpointing(logits, ids, device, use_reentrant):
    """The same gradient; and the repeated forward pass does not count its bad ids again."""
    from torch.utils.checkpoint import checkpoint

    ids[2, 3] = 600
    bilogp.take_errors(device)
    for _ in range(2):
        scored = checkpoint(lambda x: bilogp.logp(x, ids, validate=False), logits, use_reentrant=use_reentrant)
        scored[:2].sum().backward()
        assert bilogp.take_errors(device) == (1, 13, 600)
    assert torch.equal(logits.grad[:2], 2 * answers(logits, ids, validate=False)[1][:2])
    bilogp.take_errors(device)


def test_compiled_checkpointing_counts_once(logits, ids, device):
    from torch.utils.checkpoint import checkpoint

    def score(x):
        return checkpoint(lambda x: bilogp.logp(x * 1, ids, validate=False).exp(), x, use_reentrant=False)

    ids[2, 3] = 600
    bilogp.take_errors(device)
    torch.compile(score, fullgraph=True, backend="aot_eager_decomp_partition")(logits)[:2].sum().backward()
    assert bilogp.take_errors(device) == (1, 13, 600)


def test_second_derivative_is_refused(logits, ids):
    for function in (bilogp.logp, lambda x, t: torch.ops.bilogp.logp(*operator_arguments(x, t))[0]):
        (gradient,) = torch.autograd.grad(function(logits, ids).sum(), logits, create_graph=True)
        with pytest.raises(bilogp.Unsupported, match="double backward"):
            gradient.sum().backward()


def test_gradient_over_the_logits(logits, ids):
    expected, gradient = answers(logits, ids)
    inner = logits.detach().clone().requires_grad_() * 1
    places = []
    inner.register_hook(lambda grad: places.append(grad.data_ptr()))
    before = inner._version
    logp = bilogp.logp(inner, ids, inplace_backward=True)
    assert torch.equal(logp, expected)
    logp.sum().backward(retain_graph=True)
    assert torch.equal(inner, gradient)
    assert places == [inner.data_ptr()] and inner._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        logp.sum().backward()


def test_changed_logits_are_noticed(logits, ids):
    inner = logits * 1
    logp = bilogp.logp(inner, ids)
    inner.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        logp.sum().backward()


def test_nothing_is_saved_without_gradient(logits, ids):
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        bilogp.logp(logits.detach(), ids)
        assert not saved
        bilogp.logp(logits, ids)
    assert {t.data_ptr() for t in saved} >= {logits.data_ptr(), ids.data_ptr()}
    assert sum(t.numel() for t in saved if t.data_ptr() != logits.data_ptr()) <= 15 + 2 * 15


def test_lse_carries_no_gradient(logits, ids):
    result = bilogp.logp(logits, ids, return_lse=True)
    assert result.logp.requires_grad and not result.lse.requires_grad
    assert torch.allclose(result.lse.flatten()[2:], torch.logsumexp(logits, -1).detach().flatten()[2:], atol=1e-5)


def test_temperature_tensors(logits, ids, device):
    per_sequence = torch.tensor([[0.5], [0.7], [2.0]], device=device)
    result = bilogp.logp(logits, ids, temperature=per_sequence)
    for row, temperature in enumerate((0.5, 0.7, 2.0)):
        assert torch.equal(result[row], bilogp.logp(logits[row], ids[row], temperature=temperature))
    one = torch.tensor(0.7, device=device)
    assert torch.equal(bilogp.logp(logits, ids, temperature=one), bilogp.logp(logits, ids, temperature=0.7))


def test_parameters_and_bfloat16(ids, logits):
    parameter = torch.nn.Parameter(logits.detach().bfloat16())
    bilogp.logp(parameter, ids).sum().backward()
    assert parameter.grad.dtype == torch.bfloat16


def test_modes_and_fake_tensors(logits, ids):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            seen.append(str(function))
            return function(*arguments, **(keywords or {}))

    seen = []
    with Record():
        bilogp.logp(logits.detach(), ids)
    assert "bilogp.logp.default" in seen
    with FakeTensorMode() as mode:
        fake = bilogp.logp(mode.from_tensor(logits), mode.from_tensor(ids))
        assert fake.shape == (3, 5) and fake.dtype == torch.float32


LOADER = """
import torch, bilogp

class Scored(torch.utils.data.Dataset):
    def __len__(self):
        return len(ids)

    def __getitem__(self, i):
        return bilogp.logp(logits[i], ids[i])

logits, ids = torch.randn(6, 50, 3000), torch.randint(0, 3000, (6, 50))
expected = bilogp.logp(logits, ids)
loader = torch.utils.data.DataLoader(Scored(), batch_size=2, num_workers=2, multiprocessing_context="fork")
assert torch.equal(torch.cat(list(loader)), expected)
"""


def test_data_loader_workers():
    """Forked after their parent has scored; and what they send back are ordinary tensors."""
    done = subprocess.run([sys.executable, "-c", LOADER], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_grpo_first_step_has_ratio_one(logits, ids):
    """The sampler scored rows one by one, the trainer in one batch: the ratio is 1, exactly, in every token."""
    with torch.no_grad():
        sampled = torch.stack(
            [bilogp.logp(row[None], t[None])[0] for row, t in zip(logits.flatten(0, 1), ids.flatten())]
        )
    ratio = torch.exp(bilogp.logp(logits, ids).flatten() - sampled)
    assert torch.equal(ratio, torch.ones_like(ratio))
