"""The sentences against numbers worked out by hand, and what is never claimed."""

import re
from html import unescape

import pytest

from attnlab.lab.outcome import Estimate, Outcome
from attnlab.lab.report.answer import reading, verdicts
from attnlab.lab.statistics import summary


def outcome(name, values, metric="exact_match", higher=True, seeds=None, **result):
    told = summary(values) if values else {"mean": None, "low": None, "high": None, "values": []}
    estimate = Estimate(told["mean"], told["low"], told["high"], tuple(told["values"]))
    seeds = list(range(len(values))) if seeds is None else seeds
    found = {"metric": metric, "higher": higher, "seeds": seeds, "diverged": [], **result}
    return Outcome(name, {}, {}, found, {metric: estimate} if values else {}, [], None, ())


def text(markup):
    return unescape(re.sub("<[^>]*>", "", markup))


def test_a_clear_difference():
    # Differences .02, .03 and .04: mean .03, reach 4.30265 · .01/√3 = .0248.
    a, b = outcome("a", [0.92, 0.93, 0.94]), outcome("b", [0.90, 0.90, 0.90])
    assert [text(s) for s in verdicts([a, b])] == [
        "a is better than b. Seed by seed, a minus b is +3.0 points of exact match "
        "(95% interval +0.5 to +5.5, 3 pairs), which leaves out zero."
    ]


def test_less_of_an_error_is_better():
    a = outcome("a", [0.10, 0.11, 0.12], "word_error_rate", False)
    b = outcome("b", [0.20, 0.21, 0.221], "word_error_rate", False)
    (said,) = verdicts([a, b])
    assert text(said).startswith("a is better than b. Seed by seed, a minus b is −10.0 points of word error rate")


def test_what_cannot_be_told_is_not_called_the_same():
    a, b = outcome("a", [0.92, 0.90, 0.94]), outcome("b", [0.93, 0.89, 0.93])
    (said,) = map(text, verdicts([a, b]))
    assert said.startswith("These seeds cannot tell a from b.")
    assert said.endswith("which includes zero.")
    assert "same" not in said


def test_pairs_are_made_by_seed_and_not_by_place():
    # By place the differences are .01 and .01; by seed −.01 and .03, and seed 5 has no partner.
    a = outcome("a", [0.91, 0.93], seeds=[0, 1])
    b = outcome("b", [0.90, 0.92, 0.99], seeds=[1, 0, 5])
    assert "+1.0 points of exact match" in text(verdicts([a, b])[0])
    assert "2 pairs), which includes zero" in text(verdicts([a, b])[0])


def test_several_differences_say_that_they_are_not_corrected():
    found = [outcome(name, [n, n + 0.01, n + 0.02]) for name, n in (("a", 0.9), ("b", 0.8), ("c", 0.7))]
    *said, last = map(text, verdicts(found))
    assert [s.split(".")[0] for s in said] == ["a is better than b", "a is better than c"]
    assert "not corrected" in last


def test_metrics_that_differ_are_not_compared():
    found = [outcome("a", [0.9, 0.8]), outcome("b", [0.9, 0.8], "loss", False)]
    assert "not compared" in text(verdicts(found)[0])


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (outcome("a", [0.9]), "a: exact match 90.0% (no interval from one seed)."),
        (outcome("a", [0.5, 0.7], "loss", False), "a: loss 0.6 (95% interval −0.671–1.87, 2 seeds)."),
        (outcome("a", []), "a has no exact match: it was not measured."),
        (
            outcome("a", [0.9], diverged=[{"seed": 1, "learning_rate": 0.1, "step": 3}]),
            "a: exact match 90.0% (no interval from one seed; 1 more diverged and is not in the mean).",
        ),
    ],
)
def test_readings(one, words):
    assert text(reading(one)) == words
