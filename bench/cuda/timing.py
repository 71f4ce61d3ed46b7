"""Medians of event times, by turns where calls are compared.

The queue is filled behind a sleeping kernel, so that no launch waits for Python.
"""

import torch
import triton
import triton.language as tl


def median_ms(call, repeats=20, flush=None):
    for _ in range(3):
        call()
    torch.cuda._sleep(12_000_000)
    events = []
    for _ in range(repeats):
        if flush is not None:
            flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        events.append((begin, end))
    torch.cuda.synchronize()
    return sorted(begin.elapsed_time(end) for begin, end in events)[repeats // 2]


def interleaved_ms(calls, rounds=5, repeats=20, flush=None):
    """Name to median of `rounds` medians, the calls in turn: what a machine does meanwhile meets all of them.

    A call is a function, or a pair of it and of what is flushed between its launches.
    """
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            function, own_flush = call if isinstance(call, tuple) else (call, flush)
            times[name].append(median_ms(function, repeats, own_flush))
    return {name: sorted(all_times)[rounds // 2] for name, all_times in times.items()}


@triton.jit
def _read(x, out, count, block: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    words = tl.load(x + offsets, mask=offsets < count, other=0)
    total = tl.xor_sum(words, 0)
    tl.store(out, total, mask=total == 0x12345678)


@triton.jit
def _copy(x, y, count, block: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    tl.store(y + offsets, tl.load(x + offsets, mask=offsets < count), mask=offsets < count)


def read_ceiling(x, repeats=20, flush=None):
    """The best of several kernels that only read x."""
    words = x.view(torch.int32)
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    times = []
    for block, warps in ((4096, 4), (8192, 8), (8192, 4), (16384, 8)):
        grid = (triton.cdiv(words.numel(), block),)
        times.append(median_ms(lambda: _read[grid](words, out, words.numel(), block, num_warps=warps), repeats, flush))
    return min(times)


def copy_ceiling(x, y, repeats=20):
    """The best of torch's copy and own ones."""
    words, to = x.view(torch.int32), y.view(torch.int32)
    times = [median_ms(lambda: y.copy_(x), repeats)]
    for block, warps in ((1024, 8), (2048, 8), (4096, 8)):
        grid = (triton.cdiv(words.numel(), block),)
        times.append(median_ms(lambda: _copy[grid](words, to, words.numel(), block, num_warps=warps), repeats))
    return min(times)
