"""Checks that a jax that is too old is reported in one line with the version that the project requires."""

import importlib
import re
import tomllib
from pathlib import Path

import jax
import pytest

import attnlab.ops
from attnlab.console.errors import explain
from attnlab.ops.oldest import OLDEST, OldJaxError, check_jax_version

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("installed", [(0, 10, 1), (0, 9, 2), (0, 4, 35)])
def test_an_older_jax_is_refused_in_one_line(installed, monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", installed)
    found = ".".join(map(str, installed))
    with pytest.raises(OldJaxError) as refused:
        importlib.reload(attnlab.ops)
    line = f"attnlab needs jax 0.10.2 or newer, and {found} is installed: pip install 'jax>=0.10.2'"
    assert explain(refused.value) == (f"attnlab: error: {line}", 2)


@pytest.mark.parametrize("installed", [(0, 10, 2), (0, 11, 0), (1, 0, 0)])
def test_a_newer_jax_is_accepted(installed):
    check_jax_version(installed)


def test_it_is_the_version_in_pyproject_and_notebooks():
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    oldest = ".".join(map(str, OLDEST))
    assert f"jax>={oldest}" in asked
    for path in (ROOT / "notebooks").glob("*_*.py"):
        assert re.findall(r"< (\(0, [0-9, ]+\))", path.read_text()) == [str(OLDEST)]
        assert f"attnlab needs jax {oldest} or newer" in path.read_text()
