"""The recipes against the frameworks' own functions, of their pinned releases."""

from __future__ import annotations

import importlib.util
import inspect
import os
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

import canon

torch = pytest.importorskip("torch")

from bilogp.adapters import openrlhf, trl, verl  # noqa: E402

EXAMPLES = canon.REPOSITORY / "python/examples"
FRAMEWORKS = Path(os.environ.get("BILOGP_TEST_FRAMEWORKS", Path(sys.prefix) / "frameworks"))


class Anything(types.ModuleType):
    """Stands for a module that the function under test does not use."""

    __path__: list[str] = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def function_of(wheel, path, name, monkeypatch, absent):
    """A function from a file inside a wheel, with stand-ins for modules that are not installed."""
    found = sorted(FRAMEWORKS.glob(wheel))
    if not found:
        pytest.skip(f"{wheel} was not fetched")
    missing = {module for module in absent if importlib.util.find_spec(module.partition(".")[0]) is None}
    for module in missing:
        monkeypatch.setitem(sys.modules, module, Anything(module))
    with zipfile.ZipFile(found[0]) as archive:
        (entry,) = [name for name in archive.namelist() if name.endswith(path)]
        source = archive.read(entry).decode()
    space = {"__name__": "framework"}
    exec(compile(source, entry, "exec"), space)
    return space[name]


@pytest.fixture
def inputs(device):
    torch.manual_seed(3)
    return torch.randn(2, 7, 500).to(device).requires_grad_(), torch.randint(0, 500, (2, 7)).to(device)


def same_parameters(one, other):
    return [(p.name, p.default) for p in inspect.signature(one).parameters.values()] == [
        (p.name, p.default) for p in inspect.signature(other).parameters.values()
    ]


def compare(ours, theirs, logits, *arguments, **options):
    """Close answers and gradients; ours from logits that are left alone."""
    leaves = [logits.detach().clone().requires_grad_() for _ in range(2)]
    results = [function(leaf * 1, *arguments, **options) for function, leaf in zip((ours, theirs), leaves)]
    assert results[0].shape == results[1].shape
    torch.testing.assert_close(results[0], results[1], atol=1e-5, rtol=1e-5)
    for result in results:
        result.square().sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad, atol=1e-5, rtol=1e-4)


def test_trl(inputs):
    utils = pytest.importorskip("trl.trainer.utils")
    logits, ids = inputs
    assert same_parameters(trl.selective_log_softmax, utils.selective_log_softmax)
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    for options in ({}, {"temperature": 0.7}, {"temperature": 0.7, "row_mask": mask}):
        compare(trl.selective_log_softmax, utils.selective_log_softmax, logits, ids, **options)
    many = ids[..., None].repeat(1, 1, 3)
    with torch.no_grad():
        ours, theirs = (f(logits, many) for f in (trl.selective_log_softmax, utils.selective_log_softmax))
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    for function in (trl.selective_log_softmax, utils.selective_log_softmax):
        with pytest.raises(ValueError, match="temperature must be positive"):
            function(logits, ids, temperature=0)


def test_trl_trainer_takes_it(monkeypatch):
    pytest.importorskip("trl")
    code = (
        "import bilogp.adapters.trl as ours, trl.trainer.grpo_trainer, trl.trainer.dpo_trainer\n"
        "changed = ours.install()\n"
        "import trl.trainer.utils as utils\n"
        "assert utils.selective_log_softmax is ours.selective_log_softmax and 'trl.trainer.utils' in changed, changed\n"
        "for module in changed: print(module)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "trl.trainer." in done.stdout


def test_verl(inputs, monkeypatch):
    absent = ("tensordict", "transformers", "verl", "verl.utils", "verl.utils.device")
    theirs = function_of("verl-*.whl", "verl/utils/torch_functional.py", "logprobs_from_logits", monkeypatch, absent)
    logits, ids = inputs
    assert same_parameters(verl.logprobs_from_logits, theirs)
    compare(verl.logprobs_from_logits, theirs, logits, ids)
    compare(verl.logprobs_from_logits, theirs, logits, ids, inplace_backward=False)


def test_openrlhf(inputs, monkeypatch):
    theirs = function_of(
        "openrlhf-*.whl", "openrlhf/models/utils.py", "log_probs_from_logits", monkeypatch, ("deepspeed",)
    )
    logits, ids = inputs
    assert same_parameters(openrlhf.log_probs_from_logits, theirs)
    compare(openrlhf.log_probs_from_logits, theirs, logits, ids)
    scaled = logits.detach().clone()
    ours = openrlhf.log_probs_from_logits(scaled, ids, 0.7)
    assert torch.equal(scaled, logits)
    torch.testing.assert_close(ours, theirs(logits.detach().clone(), ids, 0.7), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("recipe", ["recipe_trl.py", "recipe_verl.py", "recipe_openrlhf.py"])
def test_examples_run(recipe):
    if recipe == "recipe_trl.py":
        pytest.importorskip("trl")
    done = subprocess.run([sys.executable, EXAMPLES / recipe], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "False" not in done.stdout and ("True" in done.stdout or "[1.0]" in done.stdout)
