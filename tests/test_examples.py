"""Checks that the examples in docstrings give the output that they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent
FILES = [
    path.relative_to(HOUSE) for path in sorted((HOUSE / "attnlab").rglob("*.py")) if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_examples_of_a_file_are_right(file):
    module = import_module(".".join(file.with_suffix("").parts).removesuffix(".__init__"))
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0
