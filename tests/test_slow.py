"""The list of what runs by default is of tests that there are, and leaves each of them a case."""

from pathlib import Path

import pytest

from tests.conftest import LEFT
from tests.slow import DEFAULT, TOGETHER, add_marks

TESTS = Path(__file__).parent


@pytest.mark.parametrize("name", [*DEFAULT, *TOGETHER])
def test_what_it_names_exists(name):
    file, _, test = name.partition("::")
    assert f"def {test}" in (TESTS / file).read_text()


def test_each_has_a_case_that_runs_by_default(request):
    """Among the tests that were collected: all of them in a run of the whole suite."""
    assert not request.config.stash[LEFT]


def test_a_grid_whose_cases_are_all_left_out_is_found():
    class Item:
        nodeid = "tests/test_notebooks.py::test_a_notebook_runs_and_draws_what_it_shows[renamed]"
        callspec = type("Call", (), {"id": "renamed", "params": {"name": "renamed"}})

        def add_marker(self, mark):
            assert mark.name == "slow"

    assert add_marks([Item()]) == {Item.nodeid.split("[")[0].removeprefix("tests/")}
