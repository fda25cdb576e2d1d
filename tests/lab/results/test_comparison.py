"""Tests which variants are compared with which, and over which seeds. The tests of statistics cover the verdicts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from attnlab.lab.reporting.verdict_text import basis
from attnlab.lab.results.comparison import comparison
from attnlab.lab.statistics import compare, verdicts
from tests.lab.made import outcome

BASE = [0.90, 0.91, 0.90, 0.92]


def test_the_first_variant_is_the_reference():
    found = [outcome("good", [0.95, 0.96, 0.95, 0.97], order=1), outcome("base", BASE)]
    said = comparison(found)
    assert [one.name for one in said.leaders] == ["base"]
    assert said.planned
    assert {one.name: said.word(one) for one in found} == {"good": "better", "base": "reference"}
    assert said.verdicts["good"].difference > 0


def test_a_missing_order_is_reported():
    found = [replace(outcome("a", BASE), experiment={}), replace(outcome("b", BASE), experiment={}, order=1)]
    assert not comparison(found).planned


def test_verdicts_are_corrected_for_the_whole_study():
    rows = {"b": [0.93, 0.92, 0.93, 0.95], "c": [0.90, 0.92, 0.91, 0.92], "d": [0.90, 0.91, 0.90, 0.93]}
    found = [outcome("a", BASE, margin=0.02)]
    found += [outcome(name, values, order=n) for n, (name, values) in enumerate(rows.items(), 1)]
    said = comparison(found)
    assert said.verdicts == verdicts({name: (values, BASE) for name, values in rows.items()}, 0.02)
    assert {name: v.verdict for name, v in said.verdicts.items()} == {"b": "better", "c": "same", "d": "same"}


def test_without_a_margin_nothing_is_equivalent():
    found = [outcome("a", BASE), outcome("twin", BASE, order=1), outcome("close", [x + 1e-9 for x in BASE], order=2)]
    said = comparison(found)
    assert said.margin is None
    assert said.verdicts["twin"].verdict == "unclear"
    assert said.verdicts["close"].verdict != "same"
    # With a margin, they are equivalent.
    found[0] = outcome("a", BASE, margin=0.01)
    assert {v.verdict for v in comparison(found).verdicts.values()} == {"same"}


@pytest.mark.parametrize(
    ("metric", "higher", "worst", "told"), [("bleu", True, 0.0, "0.0"), ("word_error_rate", False, 1.0, "100.0%")]
)
def test_variants_that_learned_nothing_are_not_equivalent(metric, higher, worst, told):
    found = [outcome("a", [worst] * 3, metric, higher, margin=0.01)]
    found += [outcome("b", [worst] * 3, metric, higher, order=1), outcome("c", [0.5] * 3, metric, higher, order=2)]
    said = comparison(found)
    assert "b" not in said.verdicts
    assert (
        said.refused["b"]
        == f"every seed of both has {told}, the worst possible value, which does not show that they are equal"
    )
    assert "c" in said.verdicts
    # If both reach the best possible value, they are compared, because both learned the task.
    best = [outcome(name, [1 - worst] * 3, metric, higher, order=n, margin=0.01) for n, name in enumerate("ab")]
    assert "b" in comparison(best).verdicts


def test_lower_is_better_for_errors():
    found = [outcome("a", BASE, "word_error_rate", False)]
    found += [outcome("b", [x - 0.1 - 0.001 * n for n, x in enumerate(BASE)], "word_error_rate", False, order=1)]
    assert comparison(found).verdicts["b"].verdict == "better"


def test_competitive_rates_widen_the_interval():
    values = [0.93, 0.92, 0.93, 0.95]
    found = [outcome("a", BASE, margin=0.02), outcome("b", values, order=1, contenders=[0.1, 0.2, 0.3])]
    assert comparison(found).verdicts["b"] == compare(values, BASE, 0.02, tried=(3, 1))
    assert comparison(found).verdicts["b"].low < compare(values, BASE, 0.02).low


def test_values_are_paired_by_seed_and_unpaired_seeds_are_named():
    found = [outcome("a", [0.9, 0.92, 0.99], seeds=[1, 0, 5]), outcome("b", [0.91, 0.93], seeds=[0, 1], order=1)]
    said = comparison(found)
    assert said.verdicts["b"].difference == compare([0.91, 0.93], [0.92, 0.9], 1).difference
    assert said.alone["b"] == (5,)


def test_unpairable_values_are_refused_and_never_averaged():
    found = [
        outcome("a", BASE),
        outcome("others", BASE, seeds=[10, 11, 12, 13], order=1),
        outcome("one", [0.9], order=2),
        outcome("nan", [0.9, None, 0.9, 0.9], order=3),
        outcome("dead", [], order=4),
    ]
    said = comparison(found)
    assert said.verdicts == {}
    assert said.refused["others"].endswith("got 10, 11, 12, 13 and 0, 1, 2, 3")
    assert said.refused["one"].endswith("got 0 and 0, 1, 2, 3")
    assert said.refused["nan"] == "some of its values are not finite or have no seed"
    assert said.refused["dead"] == "it has no value"
    assert all(said.word(one) == "" for one in found[1:])


def test_without_a_reference_nothing_is_compared():
    other = outcome("b", BASE, order=1)
    unfinished = replace(outcome("a", BASE), result=None, metrics={})
    for first, reason in (
        (unfinished, "it has not finished"),
        (outcome("a", []), "it has no value"),
        (outcome("a", [None, 0.9]), "some of its values are not finite or have no seed"),
        (outcome("a", BASE, "loss", False), "the finished runs have different primary metrics"),
    ):
        said = comparison([other, first])
        assert said.silent == reason
        assert (said.verdicts, said.refused) == ({}, {})


def test_invalid_margins_are_ignored():
    for margin in (0, -1, "x", float("inf")):
        assert comparison([outcome("a", BASE, margin=margin), outcome("b", BASE, order=1)]).margin is None


def asked(task, *given, **fields):
    """Returns an outcome of a task, with a fingerprint of its own data."""
    made = outcome(*given, **fields)
    told = {**made.experiment, "experiment": {"task": {"name": task}}}
    return replace(made, experiment=told, result={**(made.result or {}), "fingerprint": made.name})


def test_only_variants_with_equal_evaluation_are_compared():
    better = [x + 0.02 for x in BASE]
    found = [
        asked("lists", "lists-softmax", BASE, margin=0.01),
        asked("lists", "lists-linear", better, order=1),
        asked("paths", "paths-softmax", better, "word_error_rate", False, order=2),
        asked("paths", "paths-linear", BASE, "word_error_rate", False, order=3),
        asked("alone", "alone-softmax", [0.1, 0.2, 0.3, 0.1], order=4),
    ]
    said = comparison(found)
    assert [one.name for one in said.leaders] == ["lists-softmax", "paths-softmax"]
    assert [said.word(one) for one in found] == ["reference", "better", "reference", "better", ""]
    # The comparisons of both tasks are corrected as one family.
    flipped = {"lists-linear": (better, BASE), "paths-linear": (BASE, better)}
    direction, steps = {"lists-linear": True, "paths-linear": False}, dict.fromkeys(flipped, 1e-4)
    assert said.verdicts == verdicts(flipped, 0.01, higher=direction, metric_steps=steps)
    # An unfinished reference prevents the comparisons of its own group only.
    found[2] = replace(found[2], result=None, experiment={"experiment": {"task": {"name": "paths"}}})
    said = comparison(found)
    assert said.silent == ""
    assert said.refused == {"paths-linear": "it has not finished"}
    assert said.word(found[1]) == "better"


def test_bimodal_seeds_only_affect_variants_with_equal_evaluation():
    learned, split = [0.990, 0.992, 0.991], [0.991, 0.15, 0.989]
    low = [0.151, 0.152, 0.149]
    for task, word in (("lists", "unclear"), ("paths", "worse")):
        found = [
            asked("lists", "softmax", learned, margin=1e-4),
            asked("lists", "low", low, order=1),
            asked(task, f"{task}-first", learned, order=2),
            asked(task, f"{task}-split", split, order=3),
        ]
        assert comparison(found).word(found[1]) == word


def test_the_study_may_choose_the_reference_of_each_variant():
    better = [x + 0.02 for x in BASE]

    def named(other, *given, **fields):
        made = outcome(*given, **fields)
        return replace(made, experiment={**made.experiment, "against": other})

    found = [
        outcome("scaled-1", BASE, margin=0.01),
        outcome("scaled-4", better, order=1),
        named("scaled-4", "bare-4", better, order=2),
        named("scaled-1", "bare-1", better, order=3),
        outcome("other", better, order=4),
        named("gone", "lost", better, order=5),
    ]
    said = comparison(found)
    assert said.named
    assert [one.name for one in said.leaders] == ["scaled-1", "scaled-4"]
    assert said.references["other"].name == "scaled-1"
    assert [said.word(one) for one in found] == ["reference", "better", "same", "better", "better", ""]
    # A variant with another task is no reference.
    found[1] = asked("lists", "scaled-4", better, order=1)
    assert comparison(found).word(found[2]) == ""
    assert not comparison(found[:2]).named


def test_variants_of_one_task_with_different_evaluations_are_not_compared():
    found = [
        replace(
            made, experiment={**made.experiment, "comparable_part": {"name": "pairs", "fields": {"language": language}}}
        )
        for made, language in (
            (outcome("hun", BASE), "hun"),
            (outcome("jpn", [x + 0.02 for x in BASE], order=1), "jpn"),
            (outcome("hun-wide", [x + 0.02 for x in BASE], order=2), "hun"),
        )
    ]
    said = comparison(found)
    assert [said.word(one) for one in found] == ["reference", "", "better"]
    alone = comparison(found[:2])
    assert (alone.verdicts, alone.refused, alone.silent) == ({}, {}, "")
    assert [alone.word(one) for one in found[:2]] == ["", ""]


def planned(name, values, order):
    """Returns a variant that the study plans and that has no result yet."""
    return replace(outcome(name, values, order=order), result=None, metrics={})


def test_planned_comparisons_count_before_they_are_finished():
    # p of "good" is between .05/8 and .05. Alone it is better, and among the eight planned comparisons unclear.
    base = [0.50, 0.53, 0.51, 0.48, 0.52]
    good = [x + 0.012 + away for x, away in zip(base, [-0.01, 0.0, 0.01, -0.005, 0.005], strict=True)]
    p = ttest_rel(good, base).pvalue
    assert 0.05 / 8 < p < 0.05
    assert compare(good, base, None).verdict == "better"
    others = {f"v{n}": [x + 0.02 * (-1) ** (n + m) for m, x in enumerate(base)] for n in range(7)}
    words = []
    for done in range(len(others) + 1):
        found = [outcome("base", base), outcome("good", good, order=1)]
        for n, (name, values) in enumerate(others.items()):
            found.append((outcome if n < done else planned)(name, values, order=n + 2))
        said = comparison(found)
        words.append(said.word(found[1]))
        assert len(said.pending) == 7 - done
        assert said.verdicts["good"].comparisons == 8
        assert said.verdicts["good"].p == pytest.approx(min(1, 8 * p))
    assert words == ["unclear"] * 8


def test_a_claim_does_not_depend_on_the_number_of_finished_variants():
    # An adjusted p-value never grows when another variant finishes.
    rng = np.random.default_rng(0)
    base = list(rng.normal(0.5, 0.01, 5))
    values = {f"v{n}": [x + rng.normal(0.01 * n, 0.008) for x in base] for n in range(5)}
    last = dict.fromkeys(values, 1.0)
    for done in range(1, 6):
        found = [outcome("base", base, margin=0.004)]
        for n, (name, each) in enumerate(values.items()):
            found.append((outcome if n < done else planned)(name, each, order=n + 1))
        for name, verdict in comparison(found).verdicts.items():
            assert verdict.p <= last[name] + 1e-12
            last[name] = verdict.p
    assert min(last.values()) < 0.05


@pytest.mark.parametrize("unusable", [[0.5, None, 0.5, 0.5, 0.5], [], [0.5]])
def test_planned_comparisons_count_after_they_finished_without_usable_values(unusable):
    base = [0.50, 0.53, 0.51, 0.48, 0.52]
    good = [x + 0.012 + away for x, away in zip(base, [-0.01, 0.0, 0.01, -0.005, 0.005], strict=True)]
    found = [outcome("base", base), outcome("good", good, order=1)]
    waiting = comparison([*found, *(planned(f"v{n}", base, n + 2) for n in range(4))])
    done = comparison([*found, *(outcome(f"v{n}", unusable, order=n + 2) for n in range(4))])
    assert len(done.refused) == len(waiting.pending) == 4
    assert done.verdicts == waiting.verdicts
    assert done.verdicts["good"].verdict == "unclear"
    assert (done.comparisons, done.unfinished) == (5, 0)
    assert "all 5 comparisons that this study plans, 4 of which have no values that can be compared (" in str(
        basis(done)
    )


def test_variants_with_unfinished_reference_count_and_those_of_another_evaluation_do_not():
    def named(name, against, order, make=outcome):
        made = make(name, BASE, order=order)
        return replace(made, experiment={**made.experiment, "against": against})

    found = [
        outcome("base", BASE),
        planned("late", BASE, order=1),
        named("of-late", "late", 2),
        named("of-gone", "gone", 3, planned),
        outcome("good", [x + 0.03 for x in BASE], order=4),
    ]
    said = comparison(found)
    assert said.pending == ("late", "of-late")
    assert said.verdicts["good"].comparisons == 3
