"""The notebook runs from a clean kernel, and shows what its text says."""

from __future__ import annotations

import base64
import os

import pytest

import canon

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("torch")
pytest.importorskip("matplotlib")

FOLDER = canon.REPOSITORY / "python/examples"


def test_invariance_notebook(tmp_path):
    notebook = nbformat.read(FOLDER / "invariance.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    environment = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    resources = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute(env=environment)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    text = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    lines = [line for line in text.splitlines() if line.startswith("bilogp") and "rows differ" in line]
    assert len(lines) == 5 and all(" 0 of 48 rows differ, at most 0" in line for line in lines)
    assert "ratio from 1.000000000 to 1.000000000" in text
    (picture,) = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert base64.b64decode(picture)[:4] == b"\x89PNG"
    assert any("<table>" in output.get("data", {}).get("text/html", "") for output in outputs)
