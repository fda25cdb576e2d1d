"""Tests of what the page states about how its runs were made."""

from typing import get_args

import pytest

from attnlab.lab.reporting.provenance import MATCHED, SPENT, provenance
from attnlab.lab.study.study import Budget, Match
from tests.lab.made import outcome


def page(*told):
    found = [outcome(name, [0.5, 0.6]) for name in "abc"]
    for one, more in zip(found, told, strict=False):
        one.experiment.update(more)
    return str(provenance(found[: len(told)]))


def test_match_and_budget_are_stated():
    parameters = {"match": "parameters", "budget": "steps"}
    assert "<p>The variants have equal parameters, within 2%.</p>" in page(parameters, parameters)
    both = {"match": "state", "budget": "flops"}
    words = "The variants have equal decoding state, within 2%. Each variant is trained for the FLOPs of the base, with"
    assert words in page(both)
    assert set(MATCHED) == set(get_args(Match))
    assert set(SPENT) | {"steps"} == set(get_args(Budget))


@pytest.mark.parametrize(
    "told",
    [
        [{}, {}],
        [{"match": None, "budget": "steps"}] * 2,
        [{"match": "flops", "budget": "steps"}, {"match": None, "budget": "steps"}],
        [{"match": ["flops"], "budget": 3}],
        [{"match": "luck", "budget": None}],
    ],
)
def test_without_match_and_budget_nothing_is_stated(told):
    said = page(*told)
    assert "Matched" not in said
    assert "Trained" not in said


def test_variants_that_have_not_started_differ_in_nothing():
    told = [{"experiment": {"model": {"width": 8, "bias": None}, "train": {"rates": [0.1, 0.2]}}}, {"experiment": {}}]
    assert "What varies" not in page(*told)
    assert "What varies" in page(told[0], {"experiment": {"model": {"width": 9}}})


def test_fields_are_written_as_on_the_command_line():
    fields = {"key_heads": None, "tied": True, "rates": [0.1, 3e-05], "name": "a b"}
    assert "<code>model.key_heads=none\nmodel.tied=true\nmodel.rates=0.1,3e-05\nmodel.name=a b</code>" in page(
        {"experiment": {"model": fields}}
    )
