#!/usr/bin/env python3
"""Forward on a CPU beside what people use today: torch, jax, onnxruntime and numpy, each at its best thread count.

    python bench/cpu/bench_peers.py [--rows 512] [--vocab-size 128256] [--repeat 5]

needs the bilogp package; peers that are not installed are left out and named. Rounds are interleaved, figures medians:
milliseconds, GB/s of logits, and how many times as long as bilogp of the same round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np

import bilogp


def bilogp_calls(logits, ids, dtype):
    import ml_dtypes

    kept = logits.astype(ml_dtypes.bfloat16) if dtype == "bfloat16" else logits.astype(dtype)
    return {"bilogp": lambda: bilogp.logp(kept, ids, validate=False)}


def numpy_calls(logits, ids, dtype):
    if dtype != "float32":
        return {}

    def call():
        top = logits.max(-1, keepdims=True)
        lse = np.log(np.exp(logits - top).sum(-1)) + top[:, 0]
        return np.take_along_axis(logits, ids[:, None], 1)[:, 0] - lse

    return {"numpy": call}


def torch_calls(logits, ids, dtype):
    import torch

    x = torch.from_numpy(logits).to(getattr(torch, dtype))
    t = torch.from_numpy(ids)

    def eager():
        return torch.log_softmax(x, -1).gather(-1, t[:, None])[:, 0]

    def cross_entropy():
        return -torch.nn.functional.cross_entropy(x, t, reduction="none")

    def selected():
        return x.gather(-1, t[:, None])[:, 0].float() - torch.logsumexp(x.float(), -1)

    compiled = torch.compile(selected)

    def on_threads(threads, call):
        def run():
            torch.set_num_threads(threads)
            with torch.no_grad():
                return call()

        return run

    calls = {}
    for name, call in {
        "torch log_softmax + gather": eager,
        "torch cross_entropy": cross_entropy,
        "torch compiled": compiled,
    }.items():
        for threads in sorted({1, len(os.sched_getaffinity(0))}):
            calls[f"{name}/{threads}"] = on_threads(threads, call)
    return calls


def jax_calls(logits, ids, dtype):
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(logits).astype(dtype)
    t = jnp.asarray(ids)

    @jax.jit
    def forward(x, t):
        wide = x.astype(jnp.float32)
        return jnp.take_along_axis(wide, t[:, None], 1)[:, 0] - jax.scipy.special.logsumexp(wide, -1)

    return {"jax": lambda: forward(x, t).block_until_ready()}


def onnxruntime_calls(logits, ids, dtype):
    if dtype != "float32":
        return {}
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [
            helper.make_node("LogSoftmax", ["x"], ["y"], axis=-1),
            helper.make_node("GatherElements", ["y", "t"], ["logp"], axis=1),
        ],
        "logp",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, list(logits.shape)),
            helper.make_tensor_value_info("t", TensorProto.INT64, [len(ids), 1]),
        ],
        [helper.make_tensor_value_info("logp", TensorProto.FLOAT, [len(ids), 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    calls = {}
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        feeds = {"x": logits, "t": ids[:, None]}
        calls[f"onnxruntime/{threads}"] = lambda session=session, feeds=feeds: session.run(None, feeds)
    return calls


def measure(calls, repeat):
    times = {name: [] for name in calls}
    for round_number in range(-1, repeat):  # the first compiles and warms up
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            if round_number >= 0:
                times[name].append(time.perf_counter() - begin)
    return times


def report(times, gigabytes):
    best = {}  # of the thread counts of a peer
    for name, values in times.items():
        peer, _, threads = name.partition("/")
        if peer not in best or statistics.median(values) < statistics.median(best[peer][0]):
            best[peer] = (values, threads)
    ours = best["bilogp"][0]
    for peer, (values, threads) in best.items():
        median = statistics.median(values)
        ratio = statistics.median(value / own for value, own in zip(values, ours, strict=True))
        note = f"  ({threads} threads)" if threads else ""
        print(f"  {peer:<28} {median * 1e3:>9.1f} ms {gigabytes / median:>7.2f} GB/s {ratio:>7.1f} x{note}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--vocab-size", type=int, default=128256)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    logits = random.normal(0, 5, (arguments.rows, arguments.vocab_size)).astype(np.float32)
    ids = random.integers(0, arguments.vocab_size, arguments.rows)
    for dtype in ("bfloat16", "float16", "float32"):
        calls = {}
        for make in (bilogp_calls, torch_calls, jax_calls, onnxruntime_calls, numpy_calls):
            try:
                calls |= make(logits, ids, dtype)
            except ImportError as missing:
                print(f"  ({make.__name__.removesuffix('_calls')} is left out: {missing})")
        print(f"{dtype} [{arguments.rows}, {arguments.vocab_size}]")
        report(measure(calls, arguments.repeat), logits.size * (4 if dtype == "float32" else 2) * 1e-9)


if __name__ == "__main__":
    main()
