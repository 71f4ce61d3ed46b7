#!/usr/bin/env python3
"""Times the library on one GPU beside ceilings and peers of the same run; prints milliseconds and shares.

    python3 bench/cuda/bench_cuda.py --library build/release/libbilogp.so [--sections forward,rows,gradient,few,peers]

Needs torch with CUDA and Triton. A share is ceiling time / time: of a pure read for scores, of the best copy for gradients.
"""

import argparse
import os
import site
import sys
from pathlib import Path

# Peers that were installed with pip --target have .pth files of their own, which Python reads in site directories only.
for directory in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
    site.addsitedir(directory)

import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import peers  # noqa: E402
from library import Library, Outputs  # noqa: E402
from shape_reads import shape_read  # noqa: E402
from timing import copy_ceiling, interleaved_ms, median_ms, read_ceiling  # noqa: E402

SHAPES = ((4096, 32768), (4096, 128256), (4096, 151936), (8192, 128256))


def normal(rows, columns, dtype=torch.bfloat16, deviation=5.0):
    x = torch.empty(rows, columns, dtype=dtype, device="cuda")
    for i in range(0, rows, 512):
        x[i:i + 512] = torch.randn(min(512, rows - i), columns, device="cuda") * deviation
    return x


def each_block(x, change):
    for i in range(0, len(x), 512):
        change(x[i:i + 512])


def sprinkled(share, value):
    return lambda x: each_block(x, lambda b: b.masked_fill_(torch.rand(b.shape, device="cuda") < share, value))


def in_gap(x):
    def change(b):
        b[torch.rand(b.shape, device="cuda") < 1 / 512] = -65.0
        b[torch.rand(b.shape, device="cuda") < 1 / 512] = -float("inf")

    each_block(x, change)


def top_50(x):
    each_block(x, lambda b: b.masked_fill_(b < b.float().topk(50, dim=1).values[:, -1:], -float("inf")))


def both(*changes):
    return lambda x: [change(x) for change in changes]


# Rows as samplers and models make them, from N(0, 5).
ROW_KINDS = {
    "a third of the columns -inf": lambda x: x[:, x.shape[1] * 2 // 3:].fill_(-float("inf")),
    "1 in 512 -inf": sprinkled(1 / 512, -float("inf")),
    "1 in 512 -65504": sprinkled(1 / 512, -65504.0),
    "-inf, and logits in (-80, -51)": in_gap,
    "-65504, and logits in (-80, -51)": both(sprinkled(1 / 512, -65504.0), sprinkled(1 / 512, -65.0)),
    "all but the 50 largest -inf": top_50,
    "offset +200": lambda x: x.add_(200),
    "offset -300": lambda x: x.sub_(300),
    "offset +250, 1 in 512 -inf": both(lambda x: x.add_(250), sprinkled(1 / 512, -float("inf"))),
    "deviation 60": lambda x: x.mul_(12),
    "three-bit mantissas": lambda x: x.view(torch.int16).bitwise_and_(-16),
}


def line(name, ms, ceiling):
    time = f"{ms:8.4f} ms" if ms >= 0.05 else f"{1000 * ms:8.2f} us"
    print(f"  {name:<34} {time}  {100 * ceiling / ms:6.1f} %", flush=True)


def lines(calls, ceiling, **options):
    for name, ms in interleaved_ms(calls, **options).items():
        line(name, ms, ceiling)


def forward(library):
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for rows, columns in SHAPES if dtype == torch.bfloat16 else SHAPES[:2]:
            x, ids, out = normal(rows, columns, dtype), torch.randint(0, columns, (rows,), device="cuda"), Outputs(rows)
            read = read_ceiling(x)
            print(f"forward {str(dtype)[6:]} {rows} x {columns}: read {read:.4f} ms")
            t = torch.rand(rows, device="cuda") + 0.5
            lines({"portable": library.logp(x, ids, out), "native": library.logp(x, ids, out, native=True),
                   "temperature 0.7": library.logp(x, ids, out, temperature=0.7),
                   "a temperature per row": library.logp(x, ids, out, temperatures=t),
                   "plain plan": library.logp(x, ids, out, plan=0)}, read)


def rows(library):
    count, columns = 4096, 128256
    x, ids, out = normal(count, columns), torch.randint(0, columns, (count,), device="cuda"), Outputs(count)
    original, read = x.clone(), read_ceiling(x)
    print(f"kinds of rows, {count} x {columns}: read {read:.4f} ms")
    for name, change in ROW_KINDS.items():
        x.copy_(original)
        change(x)
        line(name, median_ms(library.logp(x, ids, out)), read)
    x.copy_(original)
    half = ids.clone()
    half[torch.rand(count, device="cuda") < 0.5] = -100
    line("half of the rows ignored", median_ms(library.logp(x, half, out)), read * (half >= 0).float().mean().item())
    odd = normal(count, columns + 1)[:, 1:]
    line("rows of odd stride", median_ms(library.logp(odd, ids, out)), read)


class Restored:
    """Brings logits back between calls that write over them: the next one would else see gradients."""

    def __init__(self, logits):
        self.logits, self.kept = logits, logits.clone()

    def zero_(self):
        self.logits.copy_(self.kept)


def gradient(library):
    for count, columns in SHAPES:
        x, ids, out = normal(count, columns), torch.randint(0, columns, (count,), device="cuda"), Outputs(count)
        grad, g = torch.empty_like(x), torch.randn(count, device="cuda")
        copy = copy_ceiling(x, grad)
        print(f"gradients bfloat16 {count} x {columns}: copy {copy:.4f} ms")
        state = Outputs(count)
        library.logp(x, ids, state)()
        calls, own = {}, x.clone()  # to be written over
        for numerics, native in (("", False), (", native", True)):
            calls["backward" + numerics] = library.backward(x, ids, state, g, grad, native=native)
            calls["forward + gradient" + numerics] = library.with_gradient(x, ids, out, g, grad, native=native)
            in_place = library.with_gradient(own, ids, out, g, own, native=native)
            calls["forward + gradient, in place" + numerics] = (in_place, Restored(own))
        add_peer(calls, "quack forward + gradient", peers.quack_with_gradient, normal(count, columns), ids, grad)
        lines(calls, copy)


def few(library):
    columns = 128256
    flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    x, ids = normal(512, columns, deviation=3.0), torch.randint(0, columns, (512,), device="cuda")
    for count in (1, 8, 16, 32, 64, 128, 256, 384, 512):
        out = Outputs(count)
        read = read_ceiling(x[:count], 40, flush)
        print(f"few rows, {count} x {columns}, cold: read {1000 * read:.2f} us")
        calls = {}
        add_peer(calls, "read of its launch shape", shape_read, x[:count])
        calls["portable"] = library.logp(x[:count], ids[:count], out)
        calls["native"] = library.logp(x[:count], ids[:count], out, native=True)
        for name in ("quack", "torch compiled"):
            add_peer(calls, name, peers.FORWARD[name], x[:count], ids[:count])
        lines(calls, read, repeats=30, flush=flush)


def add_peer(calls, name, make, *arguments):
    try:
        call = make(*arguments)
        call()
        torch.cuda.synchronize()  # a launch may fail later
    except Exception as error:  # noqa: BLE001
        print(f"  {name} is left out: {str(error).splitlines()[0][:100] if str(error) else type(error).__name__}")
    else:
        calls[name] = call


def forward_peers(_):
    for count, columns in SHAPES:
        x, ids = normal(count, columns), torch.randint(0, columns, (count,), device="cuda")
        read = read_ceiling(x)
        print(f"peers, forward bfloat16 {count} x {columns}: read {read:.4f} ms")
        calls = {}
        for name, make in peers.FORWARD.items():
            add_peer(calls, name, make, x, ids)
        lines(calls, read, repeats=10)


SECTIONS = {"forward": forward, "rows": rows, "gradient": gradient, "few": few, "peers": forward_peers}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="libbilogp.so")
    parser.add_argument("--sections", default=",".join(SECTIONS), help="which of " + ", ".join(SECTIONS))
    options = parser.parse_args()
    library = Library(options.library)
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for section in options.sections.split(","):
        SECTIONS[section](library)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
