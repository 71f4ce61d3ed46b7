"""torch and cupy on a GPU: the bits of a CPU, streams and graphs, memory, bad ids."""

from __future__ import annotations

import numpy as np
import pytest

import canon
from arrays import answers

torch = pytest.importorskip("torch")

import bilogp  # noqa: E402

if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)


def test_cpu_and_cuda_have_the_same_bits(rng):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.from_numpy((4 * rng.standard_normal((40, 5000))).astype(np.float32)).to(dtype)
        t = torch.from_numpy(rng.integers(0, 5000, 40))
        for one, other in zip(answers(x, t), answers(x.cuda(), t.cuda())):
            assert torch.equal(one, other.cpu())


def test_devices_must_agree():
    with pytest.raises(bilogp.Error, match="on cpu, but the logits are on cuda:0"):
        bilogp.logp(torch.zeros(2, 8, device="cuda"), torch.zeros(2, dtype=torch.int64))


def test_streams_and_graphs():
    x = torch.randn(64, 8192, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    t = torch.randint(0, 8192, (64,), device="cuda")
    expected, gradient = answers(x, t)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            warm, _ = answers(x, t)
    side.synchronize()
    assert torch.equal(warm, expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logp = bilogp.logp(x, t)
        (grad,) = torch.autograd.grad(logp, x, torch.ones_like(logp))
    with torch.no_grad():
        x.copy_(torch.randn_like(x))
    graph.replay()
    torch.cuda.synchronize()
    expected, gradient = answers(x, t)
    assert torch.equal(logp, expected) and torch.equal(grad, gradient)


def test_results_are_memory_of_torchs_own():
    """Which record_stream needs to do anything, and torch's graph trees to take it."""
    x = torch.randn(4, 600, device="cuda", dtype=torch.bfloat16)
    t, g = torch.arange(4, device="cuda"), torch.ones(4, device="cuda")
    forward = bilogp.logp_forward(x, t)
    results = [bilogp.logp(x, t), *forward, bilogp.logp_backward(x, t, g, forward.row_state)]
    results += [*bilogp.logp_with_gradient(x, t, g), *answers(x, t), *bilogp.logp_partial(x, t, 0, 600)[2:]]
    for result in results:
        assert torch._C._has_Standard_Deleter(result.untyped_storage()._cdata)


def test_replays_count_bad_ids_once_each():
    x = torch.randn(8, 1000, device="cuda", requires_grad=True)
    t = torch.tensor([1, 2, 3, 1000, -100, 4, 5, 6], device="cuda")
    answers(x, t)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logp = bilogp.logp(x, t)
        torch.autograd.grad(logp, x, torch.ones_like(logp))
    bilogp.take_errors("cuda")
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert bilogp.take_errors("cuda") == (3, 3, 1000)


def test_compiled_into_graphs():
    """As torch's own reduce-overhead mode makes them: warmed up, recorded, and replayed."""
    compiled = torch.compile(lambda x, t: bilogp.logp(x, t, temperature=0.7), fullgraph=True, mode="reduce-overhead")
    t = torch.randint(0, 3000, (16,), device="cuda")
    t[2] = 3000
    bilogp.take_errors("cuda")
    for _ in range(4):
        x = torch.randn(16, 3000, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        torch.compiler.cudagraph_mark_step_begin()
        logp = compiled(x, t)
        logp[3:].sum().backward()
        torch.cuda.synchronize()
        assert bilogp.take_errors("cuda") == (1, 2, 3000)
        expected, gradient = answers(x, t, temperature=0.7)
        torch.cuda.synchronize()
        bilogp.take_errors("cuda")
        assert torch.equal(logp[3:], expected[3:]) and torch.equal(x.grad[3:], gradient[3:])


def test_peak_memory():
    x = torch.randn(512, 32768, device="cuda", dtype=torch.bfloat16)
    t = torch.randint(0, 32768, (512,), device="cuda")
    answers(x, t)
    torch.cuda.synchronize()
    size = x.numel() * x.element_size()

    def peak(call):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return torch.cuda.max_memory_allocated() - before

    assert peak(lambda: bilogp.logp(x, t)) < 64 * 1024
    leaf = x.requires_grad_()
    assert peak(lambda: bilogp.logp(leaf, t).sum().backward()) < size + 64 * 1024
    leaf.grad = None
    assert peak(lambda: bilogp.logp(leaf, t, inplace_backward=True).sum().backward()) < 64 * 1024


def test_bad_ids_are_counted():
    x = torch.zeros(3, 100, device="cuda")
    bilogp.take_errors("cuda")
    result = bilogp.logp(x, torch.tensor([1, 100, -7], device="cuda"))
    torch.cuda.synchronize()
    assert torch.isnan(result).tolist() == [False, True, True]
    assert bilogp.take_errors("cuda") == (2, 1, 100)
    with pytest.raises(IndexError, match="row 1 is 100"):
        bilogp.logp(x, torch.tensor([1, 100, -7], device="cuda"), validate=True)


def test_cupy_arrays():
    cupy = pytest.importorskip("cupy")
    x = np.linspace(-4, 4, 6000, dtype=np.float32).reshape(3, 2000)
    t, g = np.array([0, 1000, 1999]), np.ones(3, np.float32)
    there = [cupy.asarray(array) for array in (x, t, g)]
    cupy.cuda.get_current_stream().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        result = bilogp.logp_forward(there[0], there[1])
        gradient = bilogp.logp_backward(*there, result.row_state)
        logp = bilogp.logp(there[0], there[1])
    stream.synchronize()
    for one, other in zip((*result, gradient, logp), (*bilogp.logp_forward(x, t), bilogp.logp_backward(x, t, g), logp)):
        assert isinstance(one, cupy.ndarray)
        assert canon.same_bits(cupy.asnumpy(one), cupy.asnumpy(other))
    assert canon.same_bits(cupy.asnumpy(logp), bilogp.logp(x, t))


def test_cupy_shards():
    cupy = pytest.importorskip("cupy")
    x, t = np.linspace(-4, 4, 6000, dtype=np.float32).reshape(3, 2000), np.array([0, 1000, 1999])
    there, ids = cupy.asarray(x), cupy.asarray(t)
    shards = [bilogp.logp_partial(there[:, a : a + 1000], ids, a, 2000) for a in (0, 1000)]
    for one, other in zip(bilogp.logp_finish(shards, ids, 2000), bilogp.logp_forward(x, t)):
        assert isinstance(one, cupy.ndarray)
        assert canon.same_bits(cupy.asnumpy(one), other)


def test_cupy_counts_bad_ids_once():
    cupy = pytest.importorskip("cupy")
    x, t, g = cupy.zeros((3, 100), "float32"), cupy.asarray([1, 100, -7]), cupy.ones(3, "float32")
    bilogp.take_errors("cuda")
    bilogp.logp_backward(x, t, g, bilogp.logp_forward(x, t).row_state)
    cupy.cuda.get_current_stream().synchronize()
    assert bilogp.take_errors("cuda") == (2, 1, 100)
