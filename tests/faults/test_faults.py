"""The short form of every fault test; the full forms: `python -m tests.faults`."""

from importlib import import_module

import pytest

from tests.faults import NAMES

# Those that compare with the same uninterrupted run, made once a process.
TOGETHER = ("kill", "sigterm", "trainers", "surroundings")


def mark(name):
    return pytest.param(name, marks=pytest.mark.xdist_group("faults") if name in TOGETHER else ())


@pytest.mark.parametrize("name", [mark(name) for name in NAMES])
def test_the_short_form_holds(name, tmp_path):
    module = import_module(f"tests.faults.{name}")
    found = module.run(module.SHORT, 0, tmp_path)
    assert found.of > 0
    assert not found.failures, "\n".join(found.failures)
