"""``python -m bilogp doctor``: what works here, what does not and which command repairs it, and a self-test that
runs every back end on carried real rows and compares bits."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
from importlib.resources import files
from typing import Any

from . import _api, _programs
from ._results import Table
from .errors import Error

# With the other names that some have on PyPI.
PACKAGES = {
    "numpy": (),
    "ml_dtypes": (),
    "torch": (),
    "jax": (),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x"),
    "nvidia-cuda-nvrtc": ("nvidia-cuda-nvrtc-cu12",),
    "nanobind-backend": (),
}


def _library_report() -> dict[str, Any]:
    """What bilogp-warmcache finds: store, compilers, drivers."""
    command = [_programs.path_of("bilogp-warmcache"), "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
        report["problem"] = done.stderr.strip() if done.returncode != 0 else ""
    except json.JSONDecodeError:
        said = (done.stderr or done.stdout).strip()
        report = {"store": {}, "back_ends": [], "problem": f"{command[0]} gave no report: {said}"}
    return report


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name, others in PACKAGES.items():
        versions[name] = next(filter(None, map(_version_of, (name, *others))), None)
    return versions


def _version_of(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def carried_rows() -> dict[str, Any]:
    """Eight rows of a real model's logits, 49,152 columns each, and the bits of their answers."""
    import numpy

    data = numpy.load(str(files(__package__) / "data" / "real_rows.npz"))
    return {name: data[name] for name in data.files}


def _bits_of(device: str, rows: dict[str, Any]) -> Any:
    """logp and lse, as bits, computed on `device`."""
    import numpy

    logits = rows["logits"].astype(numpy.uint32) << 16  # stored as bfloat16's bits
    logits = logits.view(numpy.float32)
    if device == "cpu":
        result = _api.logp(logits, rows["target_ids"], return_lse=True)
        return numpy.stack([result.logp, result.lse]).view(numpy.uint32)
    import torch

    result = _api.logp(
        torch.from_numpy(logits).to(device), torch.from_numpy(rows["target_ids"]).to(device), return_lse=True
    )
    return torch.stack(list(result)).cpu().numpy().view(numpy.uint32)


def _self_test(device: str, rows: dict[str, Any]) -> dict[str, Any]:
    import numpy

    expected = numpy.stack([rows["logp"], rows["lse"]])
    try:
        differing = int((_bits_of(device, rows) != expected).sum())
    except (Error, ImportError) as error:
        return {"device": device, "passed": False, "reason": str(error)}
    reason = "" if differing == 0 else f"{differing} of {expected.size} answers have other bits than the contract's"
    return {"device": device, "passed": differing == 0, "compared": int(expected.size), "reason": reason}


def _devices() -> list[str]:
    """The CPU, and CUDA's devices where torch can put arrays there."""
    back_ends = {back_end.name: back_end.available for back_end in _api.runtime_info().back_ends}
    return ["cpu"] + (["cuda:0"] if back_ends.get("cuda") else [])


def report() -> dict[str, Any]:
    found = _library_report()
    info = _api.runtime_info()
    rows = carried_rows()
    tests = [_self_test(device, rows) for device in _devices()]
    return {
        "version": info.version,
        "contract_id": info.contract_id,
        "num_threads": info.num_threads,
        "store": found["store"],
        "back_ends": found["back_ends"],
        "problem": found["problem"],
        "packages": _versions(),
        "self_test": tests,
        "healthy": not found["problem"] and all(test["passed"] for test in tests),
    }


def _back_end_row(back_end: dict[str, Any]) -> tuple[str, ...]:
    compiler = back_end.get("compiler") or ""
    if isinstance(compiler, dict):
        compiler = f"NVRTC {compiler['version']}" if "version" in compiler else compiler.get("reason", "")
    state = "available" if back_end["available"] else back_end.get("reason", "")
    return back_end["name"], state, compiler or back_end.get("reason", "")


def tables(found: dict[str, Any]) -> list[Table]:
    store = found["store"]
    shown = ("file", "directory", "bytes", "kernels", "writable", "problem")
    places = [(name, str(store[name])) for name in shown if store.get(name) not in (None, "")]
    tests = [(t["device"], "same bits" if t["passed"] else t["reason"]) for t in found["self_test"]]
    versions = [(name, version or "not installed") for name, version in found["packages"].items()]
    title = f"bilogp {found['version']}, contract {found['contract_id']}"
    return [
        Table(title, ("back end", "state", "compiler"), tuple(map(_back_end_row, found["back_ends"]))),
        Table("Store", ("", ""), tuple(places)),
        Table("Self-test on real rows", ("device", "result"), tuple(tests)),
        Table("Packages", ("", "version"), tuple(versions)),
    ]


def run(as_json: bool) -> int:
    """Prints the report; 0 where all is well."""
    found = report()
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        from rich.console import Console

        console = Console(highlight=False)
        for table in tables(found):
            console.print(table)
        if found["problem"]:
            console.print(found["problem"])
    return 0 if found["healthy"] else 1
