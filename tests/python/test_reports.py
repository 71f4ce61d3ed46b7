"""warmup, runtime_info and how reports look."""

from __future__ import annotations

import io

import numpy as np

import bilogp


def test_warmup_makes_calls_find_their_kernel():
    report = bilogp.warmup([4096, 5000], ["float32", "float16"], ["logp_forward"], progress=False)
    assert len(report.kernels) >= 4
    assert {kernel.origin for kernel in report.kernels} <= {"compiled", "store", "loaded"}
    again = bilogp.warmup([4096, 5000], ["float32", "float16"], ["logp_forward"])
    assert {kernel.origin for kernel in again.kernels} == {"loaded"}


def test_warmup_for_another_machine():
    report = bilogp.warmup(4096, "bfloat16", "logp_forward", target="cpu:x86-64-v2")
    assert all(kernel.target.startswith("cpu:x86-64-v2") for kernel in report.kernels)


def test_reports_show_themselves():
    from rich.console import Console

    bilogp.logp(np.zeros((2, 8), np.float32), np.array([1, 2]))
    info = bilogp.runtime_info()
    console = Console(file=io.StringIO(), width=300)
    console.print(info)
    faces = {"text": str(info), "html": info._repr_html_(), "rich": console.file.getvalue()}
    for face in faces.values():
        assert "bilogp.canon-1.portable" in face and "cpu:" in face and "logp_forward" in face
    assert faces["html"].startswith("<table>") and "<td>cpu</td>" in faces["html"]
    assert info.contract_id == bilogp.contract_id()
    assert bilogp.contract_id("native", "cuda:sm_90a") == "bilogp.canon-1.native.sm_90a"
    assert info.version == bilogp.__version__
    assert [back_end.name for back_end in info.back_ends] == ["cpu", "cuda", "hip"]
    for back_end in info.back_ends:
        assert back_end.available or back_end.reason


def test_threads_can_be_set():
    usual = bilogp.num_threads()
    bilogp.set_num_threads(3)
    try:
        assert bilogp.num_threads() == 3
    finally:
        bilogp.set_num_threads(0)
    assert bilogp.num_threads() == usual
