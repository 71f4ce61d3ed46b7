"""The stub of the extension says what the extension has."""

from __future__ import annotations

import ast
import re
from importlib.resources import files

import bilogp
from bilogp import _core


def test_stub_matches_the_extension():
    tree = ast.parse((files(bilogp) / "_core.pyi").read_text())
    stubs = {node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef)}
    functions = {name: value for name, value in vars(_core).items() if type(value).__name__ == "nb_func"}
    assert stubs.keys() == functions.keys()
    for name, function in functions.items():
        signature = function.__nb_signature__[0][0]
        inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
        parameters = [word for word in re.findall(r"(\w+):", inside)]
        assert [argument.arg for argument in stubs[name].args] == parameters, signature
        assert len(stubs[name].defaults) == inside.count(" = "), signature


def test_everything_public_is_listed_and_documented():
    assert (files(bilogp) / "py.typed").is_file()
    for name in bilogp.__all__:
        assert getattr(bilogp, name).__doc__, name
