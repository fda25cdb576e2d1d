"""Tests a few cases of every fault. `-m slow` tests the short forms, `python -m tests.faults` the full forms."""

from importlib import import_module

import pytest

from tests.faults import NAMES

# The number of cases that run by default, for tests that take long.
FEW = {
    "kill": 1, "sigterm": 1, "trainers": 1, "surroundings": 1, "resume": 1, "numbers": 2,
    "writes": 4, "folders": 10,
}  # fmt: skip


def held(name, count, folder):
    module = import_module(f"tests.faults.{name}")
    found = module.run(module.SHORT if count is None else count, 0, folder)
    assert found.of > 0
    assert not found.failures, "\n".join(found.failures)


@pytest.mark.parametrize("name", NAMES)
def test_a_few_cases_of_each_fault(name, tmp_path):
    held(name, FEW.get(name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_the_short_form_of_each_fault(name, tmp_path):
    held(name, None, tmp_path)
