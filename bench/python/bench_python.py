#!/usr/bin/env python3
"""Times the Python package beside the C++ library, torch and jax; prints figures and ratios side by side.

    python bench/python/bench_python.py [--sections import,calls,cpu,cuda] [--cpp build/release/bench_python_call]

`cuda` needs a GPU with torch, and compares with the library's C interface in the same process (bench/cuda).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]


def line(name, value, unit, note=""):
    print(f"  {name:<58} {value:>10.3f} {unit:<5} {note}", flush=True)


def best_us(call, calls=5000, repeats=9):
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - begin) / calls)
    return best * 1e6


def median_ms(call, repeats=5):
    call()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def section_import(arguments):
    print("import, of a new process")
    code = "import time; t = time.perf_counter(); import bilogp; print(time.perf_counter() - t)"
    times = [float(subprocess.check_output([sys.executable, "-c", code])) * 1e3 for _ in range(15)]
    line("import bilogp, median of 15", statistics.median(times), "ms", f"{min(times):.1f} to {max(times):.1f}")


def section_calls(arguments):
    import numpy as np

    import bilogp

    print("one call, float32 [1, 4]")
    cpp = float(subprocess.check_output([arguments.cpp])) / 1e3 if Path(arguments.cpp).exists() else float("nan")
    line("C++", cpp, "us")
    x, t = np.array([[0.5, -1, 2, 0]], np.float32), np.array([2])
    out = np.empty(1, np.float32)
    for name, call in {
        "numpy": lambda: bilogp.logp(x, t),
        "numpy, out=": lambda: bilogp.logp(x, t, out=out),
    }.items():
        us = best_us(call)
        line(name, us, "us", f"{us - cpp:.2f} over C++" if cpp == cpp else "")
    try:
        import torch
    except ImportError:
        return
    tx, tt = torch.from_numpy(x), torch.from_numpy(t)
    tr = tx.clone().requires_grad_()
    ones = torch.ones(1)

    def both_passes():
        tr.grad = None
        bilogp.logp(tr, tt).backward(ones)

    def peer():
        tr.grad = None
        torch.log_softmax(tr, -1).gather(-1, tt[:, None])[:, 0].backward(ones)

    for name, call in {
        "torch, no gradient": lambda: bilogp.logp(tx, tt),
        "torch, gradient recorded": lambda: bilogp.logp(tr, tt),
        "torch, forward and backward": both_passes,
    }.items():
        us = best_us(call)
        line(name, us, "us", f"{us - cpp:.2f} over C++" if cpp == cpp else "")
    line("torch's log_softmax and gather, forward and backward", best_us(peer, 2000), "us")


def torch_selective(x, t):
    import torch

    return torch.log_softmax(x.float(), -1).gather(-1, t[:, None])[:, 0]


def both(function, x, t, ones):
    def call():
        x.grad = None
        function(x, t).backward(ones)

    return call


def section_cpu(arguments):
    import torch

    import bilogp

    compiled = torch.compile(torch_selective)
    for rows, vocab in ((4096, 32768), (512, 128256)):
        print(f"CPU, bfloat16 [{rows}, {vocab}], {bilogp.num_threads()} threads")
        torch.manual_seed(0)
        x = (torch.randn(rows, vocab) * 4).bfloat16()
        t, ones = torch.randint(0, vocab, (rows,)), torch.ones(rows)
        own = median_ms(lambda: bilogp.logp(x, t))
        line("bilogp, forward", own, "ms", f"{2e-6 * rows * vocab / own:.1f} GB/s")
        for name, function in (("torch eager", torch_selective), ("torch compiled", compiled)):
            ms = median_ms(lambda: function(x, t), 3)
            line(f"{name}, forward", ms, "ms", f"{ms / own:.2f} x")
        xr = x.requires_grad_()
        own = median_ms(both(bilogp.logp, xr, t, ones), 3)
        line("bilogp, forward + backward", own, "ms")
        for name, function in (("torch eager", torch_selective), ("torch compiled", compiled)):
            ms = median_ms(both(function, xr, t, ones), 3)
            line(f"{name}, forward + backward", ms, "ms", f"{ms / own:.2f} x")
        xr.grad = None
        section_jax(x.detach(), t)


def section_jax(x, t):
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return
    import bilogp

    jx, jt = jnp.asarray(x.float().numpy()).astype(jnp.bfloat16), jnp.asarray(t.numpy().astype("int32"))

    def peer(x):
        return jnp.take_along_axis(jax.nn.log_softmax(x.astype(jnp.float32)), jt[:, None], -1)[:, 0]

    def own(x):
        return bilogp.logp(x, jt)

    for title, wrap in (
        ("forward", lambda f: f),
        ("forward + backward", lambda f: jax.value_and_grad(lambda x: f(x).sum())),
    ):
        times = []
        for function in (own, peer):
            jitted = jax.jit(wrap(function))
            times.append(median_ms(lambda: jax.block_until_ready(jitted(jx)), 3))
        line(f"bilogp in jax, {title}", times[0], "ms")
        line(f"jax, {title}", times[1], "ms", f"{times[1] / times[0]:.2f} x")


def cuda_passes(library, rows, vocab):
    import torch
    from library import Outputs
    from timing import median_ms as event_ms

    import bilogp

    x = torch.empty(rows, vocab, dtype=torch.bfloat16, device="cuda")
    for part in x.split(512):
        part.copy_(torch.randn(part.shape, device="cuda") * 5)
    t, out, g = torch.randint(0, vocab, (rows,), device="cuda"), Outputs(rows), torch.ones(rows, device="cuda")
    cpp = event_ms(library.logp(x, t, out), 15)
    own = event_ms(lambda: bilogp.logp(x, t), 15)
    line(f"[{rows}, {vocab}] forward", own, "ms", f"C++ {cpp:.3f} ms, {100 * (own / cpp - 1):+.1f} %")
    leaf = x.requires_grad_()
    logp = bilogp.logp(leaf, t)
    own = event_ms(lambda: torch.autograd.grad(logp, leaf, g, retain_graph=True), 15)
    gradient = torch.empty_like(x)
    cpp = event_ms(library.backward(x.detach(), t, out, g, gradient), 15)
    line(f"[{rows}, {vocab}] backward", own, "ms", f"C++ {cpp:.3f} ms, {100 * (own / cpp - 1):+.1f} %")
    cpp = event_ms(library.with_gradient(x.detach(), t, out, g, gradient), 15)
    own = event_ms(lambda: bilogp.logp_with_gradient(x.detach(), t, g, out=gradient), 15)
    line(f"[{rows}, {vocab}] both in one", own, "ms", f"C++ {cpp:.3f} ms, {100 * (own / cpp - 1):+.1f} %")


def cuda_few_rows(library, event_ms):
    """Behind a flushed cache, as bench/cuda has them."""
    import torch
    from library import Outputs

    import bilogp

    flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    x, t = torch.randn(256, 128256, device="cuda").bfloat16(), torch.randint(0, 128256, (256,), device="cuda")
    for rows in (1, 8, 64, 256):
        cpp = event_ms(library.logp(x[:rows], t[:rows], Outputs(rows)), 40, flush)
        own = event_ms(lambda: bilogp.logp(x[:rows], t[:rows], return_lse=True), 40, flush)
        line(f"[{rows}, 128256] forward", 1e3 * own, "us", f"C++ {1e3 * cpp:.2f} us")


def section_cuda(arguments):
    import torch

    import bilogp

    sys.path.insert(0, str(BENCH / "cuda"))
    from library import Library, Outputs
    from timing import median_ms as event_ms

    library = Library(str(next((Path(bilogp.__file__).parent / "lib").glob("libbilogp.so*"))))
    print(torch.cuda.get_device_name())
    for rows, vocab in ((4096, 32768), (4096, 128256), (4096, 151936), (8192, 128256)):
        cuda_passes(library, rows, vocab)
    cuda_few_rows(library, event_ms)
    x, t = torch.randn(1, 32768, device="cuda", dtype=torch.bfloat16), torch.tensor([5], device="cuda")
    call, options = library.logp(x, t, Outputs(1)), {"calls": 2000, "repeats": 5}

    def host_us(function):
        function()
        torch.cuda.synchronize()
        us = best_us(function, **options)
        torch.cuda.synchronize()
        return us

    cpp, own = host_us(call), host_us(lambda: bilogp.logp(x, t))
    line("[1, 32768] queued by the host", own, "us", f"C interface through ctypes {cpp:.2f} us")

    def whole(function):
        def run():
            function()
            torch.cuda.synchronize()

        return run

    cpp, own = best_us(whole(call), 500, 5), best_us(whole(lambda: bilogp.logp(x, t)), 500, 5)
    line("[1, 32768] with synchronize", own, "us", f"C interface {cpp:.2f} us, {own - cpp:+.2f}")


SECTIONS = {"import": section_import, "calls": section_calls, "cpu": section_cpu, "cuda": section_cuda}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", default="import,calls,cpu")
    parser.add_argument("--cpp", default=str(BENCH.parent / "build/release/bench_python_call"))
    chosen = parser.parse_args()
    for section in chosen.sections.split(","):
        SECTIONS[section](chosen)
