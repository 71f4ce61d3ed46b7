"""warmup, runtime_info, the doctor, the registry, the programs; and how reports look."""

from __future__ import annotations

import inspect
import io
import json
import os
import shutil
import subprocess
import sys
import sysconfig

import numpy as np
import pytest

import bilogp
from samples import DATA


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


def python_m_bilogp(*arguments, **environment):
    command = [sys.executable, "-m", "bilogp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


def test_doctor():
    done = python_m_bilogp("doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["healthy"] and report["contract_id"] == "bilogp.canon-1.portable"
    assert report["self_test"][0] == {"device": "cpu", "passed": True, "compared": 16, "reason": ""}
    assert {back_end["name"] for back_end in report["back_ends"]} == {"cpu", "cuda", "hip"}
    assert report["store"]["file"].endswith("kernels-v1.db")
    plain = python_m_bilogp("doctor")
    assert plain.returncode == 0 and "same bits" in plain.stdout and "canon-1" in plain.stdout


def test_doctor_says_how_to_repair_a_missing_compiler():
    done = python_m_bilogp("doctor", "--json", BILOGP_CLANG_COMPONENT="/nowhere/libbilogp_clang.so")
    report = json.loads(done.stdout)
    assert done.returncode == 1 and not report["healthy"]
    assert "/nowhere/libbilogp_clang.so" in report["problem"] and "install" in report["problem"]


def test_doctor_notices_wrong_bits(monkeypatch, capsys):
    from bilogp import doctor

    rows = doctor.carried_rows()
    rows["logp"][3] ^= 1
    monkeypatch.setattr(doctor, "carried_rows", lambda: rows)
    assert doctor.run(as_json=True) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["healthy"] and report["self_test"][0]["reason"].startswith("1 of 16 answers")


def test_programs_come_along():
    places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    score, warmcache = (shutil.which(name, path=places) for name in ("bilogp-score", "bilogp-warmcache"))
    score = subprocess.run([score, DATA / "smollm2_rollouts_bf16.safetensors"], capture_output=True)
    assert score.returncode == 0 and score.stdout
    listed = subprocess.run([warmcache, "list", "--json"], capture_output=True, text=True)
    assert listed.returncode == 0 and json.loads(listed.stdout)


def test_kernel_registry():
    operator = bilogp.kernel_registry.get_op("batch_invariant_logp")
    logits, ids = np.zeros((2, 8), np.float32), np.array([1, -7])
    parameters = inspect.signature(operator).parameters
    assert list(parameters) == ["logits", "target_ids", "ignore_index", "validate"]
    assert parameters["ignore_index"].default == -100
    with pytest.raises(IndexError, match="row 1 is -7"):
        operator(logits, ids, validate=True)
    assert np.isnan(operator(logits, ids, validate=False)).tolist() == [False, True]
    assert bilogp.take_errors().count == 1
    assert operator(logits, ids, -7).tolist()[1] == 0
    with pytest.raises(KeyError, match="expected one of batch_invariant_logp") as raised:
        bilogp.kernel_registry.get_op("softmax")
    assert isinstance(raised.value, bilogp.Error)
