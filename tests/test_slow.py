"""Checks that the list of cases that run by default names existing tests."""

from pathlib import Path

import pytest

from tests.conftest import LEFT
from tests.groups import group
from tests.slow import DEFAULT, add_marks

TESTS = Path(__file__).parent


@pytest.mark.parametrize("name", DEFAULT)
def test_every_listed_test_exists(name):
    file, _, test = name.partition("::")
    assert f"def {test}" in (TESTS / file).read_text()


def test_tests_that_share_programs_or_runs_are_in_one_group():
    contract = "tests/mechanisms/test_contract_forms.py::test_it"
    names = ("softmax", "2-short-convolution", "None-short-convolution", "13-softmax")
    assert [group(f"{contract}[{name}]") for name in names] == ["softmax", *["short-convolution"] * 2, "softmax"]
    assert group("tests/faults/test_faults.py::test_a_few_cases_of_each_fault[kill]") == "faults"
    assert group("tests/ops/test_mask.py::test_it[a]") == "tests/ops/test_mask.py"
    assert group("tests/models/test_vit.py::test_it[a::b]") == "tests/models/test_vit.py::test_it"


def test_every_listed_test_has_a_default_case(request):
    """Checks the collected tests, which are all tests if the whole suite runs."""
    assert not request.config.stash[LEFT]


def test_a_grid_without_default_cases_is_detected():
    class Item:
        nodeid = "tests/test_notebooks.py::test_a_notebook_runs_and_draws_its_figures[renamed]"
        callspec = type("Call", (), {"id": "renamed", "params": {"name": "renamed"}})

        def add_marker(self, mark):
            assert mark.name == "slow"

    assert add_marks([Item()]) == {Item.nodeid.split("[")[0].removeprefix("tests/")}
