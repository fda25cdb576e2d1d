"""Compares the sentences with numbers computed by hand, and checks which claims are never made."""

import re
from dataclasses import replace
from html import unescape

import pytest

from attnlab.lab.reporting.verdict_text import against, basis, reading, verdict
from attnlab.lab.results.comparison import comparison
from attnlab.lab.statistics import minimum_detectable_difference, required_seeds
from tests.lab.made import outcome

BASE = [0.90, 0.90, 0.90]


def text(markup):
    return unescape(re.sub("<[^>]*>", "", markup or ""))


def said(*found):
    """Returns the sentences at the top of the page and the sentence of each variant."""
    compared = comparison(found)
    return [text(s) for s in verdict(found, compared)], [text(against(one, compared)) for one in found]


def test_a_clear_difference():
    # The differences .02, .03 and .04 have mean .03, half-width 4.30265 · .01/√3 = .0248, and effect .5642 · .03/.01.
    over, (own, first) = said(outcome("a", [0.92, 0.93, 0.94], order=1), outcome("b", BASE))
    assert over == ["a is better than b."]
    assert own == "Better than b: +3.0 points (95% interval +0.5 to +5.5, 3 pairs; effect +1.7)."
    assert first == "The reference."


def test_lower_is_better_for_errors():
    a = outcome("a", [0.10, 0.11, 0.12], "word_error_rate", False, order=1)
    over, (own, _) = said(a, outcome("b", [0.20, 0.21, 0.2204], "word_error_rate", False))
    assert over == ["a is better than b."]
    assert own.startswith("Better than b: −10.0 points (95% interval ")
    # The effect is .5642 · .100133 / (.0004/√3), which is not written as 2.4e+02.
    assert own.endswith("3 pairs; effect −245).")


def test_an_unclear_verdict_states_the_detectable_difference_and_not_equality():
    over, (own, _) = said(outcome("a", [0.92, 0.90, 0.94], order=1), outcome("b", [0.93, 0.89, 0.93]))
    assert over == ["a does not differ significantly from b with these seeds."]
    assert own.startswith("Unclear compared with b: +0.3 points (95% interval −2.5 to +3.2, 3 pairs; effect +0.16).")
    could, seeds = minimum_detectable_difference(0.02 / 3**0.5, 3), required_seeds(0.01 / 3, 0.02 / 3**0.5)
    assert f"Such a study has 80% power to detect a true difference of {100 * could:.2g} points; " in own
    assert own.endswith(f"detecting the observed difference takes {seeds} seeds.")
    assert "same" not in own


def test_few_pairs_of_bimodal_seeds_allow_no_claim():
    split, low = outcome("split", [0.90, 0.15, 0.91], order=1), outcome("low", [0.14, 0.15, 0.16], order=2)
    over, (_, own, _) = said(split, low, outcome("b", BASE))
    assert over == ["split and low do not differ significantly from b with these seeds."]
    assert own.startswith("Unclear compared with b: −75.0 points (joint interval −78.6 to −71.4, 3 pairs; effect −42).")
    assert own.endswith(
        "The interval uses only the spread of these pairs. But the seeds of another variant form two clusters 75 "
        "points apart, so this difference over 3 pairs may be chance. Ruling out chance takes 4 pairs that agree."
    )


def test_a_margin_allows_an_equivalence_verdict():
    over, (own, _) = said(outcome("a", [0.901, 0.899, 0.90, 0.90], order=1), outcome("b", [0.90] * 4, margin=0.01))
    assert over == ["a is the same as b within 1 point."]
    assert own.startswith("The same as b: 0.0 points (95% interval ")
    over, (own, _) = said(outcome("a", [0.95, 0.85, 0.90, 0.90], order=1), outcome("b", [0.90] * 4, margin=0.01))
    assert over == ["a does not differ significantly from b with these seeds."]
    assert re.search(
        r"; detecting a difference of 1 point takes \d+ seeds, calling two equal variants the same takes \d+ seeds\.$",
        own,
    )
    # The differences −.01, .01 and .01 have mean .01/3 and standard deviation .02/√3. Each number of seeds is reported.
    over, (own, _) = said(outcome("a", [0.92, 0.90, 0.94], order=1), outcome("b", [0.93, 0.89, 0.93], margin=0.001))
    spread = 0.02 / 3**0.5
    seeds = [required_seeds(0.01 / 3, spread), required_seeds(0.001, spread), required_seeds(0.001, spread, 0.9, 0.9)]
    assert own.endswith(
        f"; detecting the observed difference takes {seeds[0]} seeds, detecting a difference of 0.1 points takes "
        f"{seeds[1]:,} seeds, calling two equal variants the same takes {seeds[2]:,} seeds."
    )


def test_diverged_seeds_are_reported_with_the_verdict():
    lost = [{"seed": n, "learning_rate": 0.1, "step": 3} for n in (2, 3, 4)]
    a = outcome("a", [0.93, 0.95], seeds=[0, 1, 2, 3, 4], order=1, diverged=lost, learning_rate=0.1)
    over, _ = said(a, outcome("b", [0.5, 0.52, 0.5, 0.5, 0.5]))
    assert over == ["a is better than b.", "Some seeds diverged and are excluded from the means: a (3 of 5)."]


def test_equal_values_are_reported_for_every_verdict():
    over, (own, _) = said(outcome("a", [0.5] * 3, order=1), outcome("b", [0.5] * 3, margin=0.01))
    assert over == ["a is the same as b within 1 point."]
    assert own.endswith(" These seeds show no spread, but other seeds may.")


def test_both_ends_of_an_interval_are_printed_differently():
    _, (own, _) = said(outcome("a", [0.60001, 0.60002, 0.60003], order=1), outcome("b", [0.59] * 3))
    low, high = re.search(r"interval (\S+) to (\S+),", own).groups()
    assert (low, high) == ("+1.000", "+1.004")


def test_unpaired_seeds_are_named():
    a = outcome("a", [0.91, 0.93], seeds=[0, 1], order=1)
    lost = {"diverged": [{"seed": 7, "learning_rate": 0.1, "step": 3}], "learning_rate": 0.1}
    _, (own, _) = said(a, outcome("b", [0.90, 0.92, 0.99], seeds=[1, 0, 5]))
    assert own.endswith("Left out for lack of a partner: seed 5.")
    b = outcome("b", [0.90, 0.92], seeds=[1, 0])
    c = outcome("c", [0.90, 0.92, 0.99], seeds=[1, 0, 7], order=2)
    assert "seed 7 (diverged)." in said(c, outcome("b", [0.90, 0.92], seeds=[1, 0], **lost))[1][0]
    assert "Left out" not in said(a, b)[1][0]


def test_one_seed_or_different_seeds_are_not_compared():
    over, (own, _) = said(outcome("a", [0.91], order=1), outcome("b", [0.90]))
    assert over == ["There is no verdict on a."]
    assert own.startswith(
        "Not compared with b: a paired comparison needs at least two common seeds, because one seed has no spread."
    )
    over, (own, _) = said(outcome("a", [0.91, 0.9], seeds=[5, 6], order=1), outcome("b", [0.90, 0.91]))
    assert own.endswith("needs at least two common seeds, got 5, 6 and 0, 1.")


def test_several_variants_are_listed_by_verdict_with_correction():
    rows = {"b": 0.95, "c": 0.85, "d": 0.96, "e": 0.8}
    found = [outcome(name, [n, n + 0.001, n - 0.001], order=k) for k, (name, n) in enumerate(rows.items(), 1)]
    found.append(outcome("a", BASE))
    over, own = said(*found)
    assert over == ["b and d are better than a.", "c and e are worse than a."]
    assert all("joint interval" in one for one in own[:-1])
    told = text(basis(comparison(found)))
    assert "a, the study's first variant, over the same seeds. " in told
    assert "The verdicts are corrected for all 4 comparisons (Holm" in told
    assert "No margin was set" in told


def test_nothing_to_compare_is_reported():
    (sentence,), _ = said(outcome("a", [0.9, 0.8]), outcome("b", [0.9, 0.8], "loss", False, order=1))
    assert sentence.startswith("Nothing is compared with the reference a: the finished runs have different")
    assert said(outcome("a", BASE)) == ([], [""])


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (outcome("a", [0.9]), "a: exact match 90.0% (no interval from one seed)."),
        (outcome("a", [0.5, 0.7], "loss", False), "a: loss 0.600 (95% interval −0.671–1.87, 2 seeds)."),
        (outcome("a", [1.0, 1.0, 1.0]), "a: exact match 100.0% (no interval: 3 seeds show no spread)."),
        (outcome("a", []), "a has no exact match: it was not measured."),
        (outcome("a", [0.9, None]), "a failed: exact match is not finite for 1 of 2 seeds. It is not averaged."),
        (
            outcome("a", [0.9], diverged=[{"seed": 1, "learning_rate": 0.1, "step": 3}]),
            "a: exact match 90.0% (no interval from one seed; 1 more diverged and is not in the mean).",
        ),
    ],
)
def test_readings_of_verdicts(one, words):
    assert text(reading(one)) == words


def test_variants_with_different_evaluations_have_separate_references():
    made = [
        outcome("lists-a", BASE),
        outcome("lists-b", [0.95, 0.96, 0.95], order=1),
        outcome("paths-a", BASE, order=2),
        outcome("paths-b", [0.85, 0.84, 0.85], order=3),
    ]
    task = lambda one: {**one.experiment, "experiment": {"task": {"name": one.name[:5]}}}
    found = [replace(one, experiment=task(one)) for one in made]
    sentences, each = said(*found)
    assert sentences == ["lists-b is better than lists-a.", "paths-b is worse than paths-a."]
    assert [one.split(":")[0] for one in each] == [
        "The reference.", "Better than lists-a", "The reference.", "Worse than paths-a",
    ]  # fmt: skip
    told = text(basis(comparison(found)))
    assert told.startswith("Each variant is compared with the first variant with the same task, over the same")
    assert "The verdicts are corrected for all 2 comparisons (Holm" in told


def test_variants_without_common_evaluation_are_reported():
    made = [outcome("hun", BASE), outcome("jpn", [0.95, 0.96, 0.95], order=1)]
    found = [replace(one, experiment={**one.experiment, "comparable_part": {"language": one.name}}) for one in made]
    sentences, each = said(*found)
    assert sentences == ["Every variant has a different task, so no variants are compared."]
    assert each == ["", ""]


def test_differences_of_fractions_are_at_most_one():
    _, (own, _) = said(outcome("a", [0.97, 0.17, 0.93], order=1), outcome("b", [1.0, 1.0, 0.99]))
    assert "(95% interval −100.0 to +82.0, 3 pairs; " in own
    assert "So few seeds cannot reliably detect any difference; detecting the observed difference takes " in own


@pytest.mark.parametrize("sign", [1, -1])
def test_a_nonzero_end_of_an_interval_is_never_printed_as_zero(sign):
    # The mean is .002 and the half-width 4.30265 · s/√3, so that the near end is .0002 points from 0.
    s = (0.002 - 2e-6) * 3**0.5 / 4.3026527297
    values = [0.9 + sign * (0.002 + s * x) for x in (-1, 0, 1)]
    _, (own, _) = said(outcome("a", values, order=1), outcome("b", BASE))
    near, far = ("+0.0002", "+0.4") if sign > 0 else ("−0.0002", "−0.4")
    low, high = (near, far) if sign > 0 else (far, near)
    assert own.startswith(
        f"{'Better' if sign > 0 else 'Worse'} than b: {far[0]}0.2 points (95% interval {low} to {high},"
    )


def test_without_any_difference_there_is_no_interval():
    # The resolution of a metric is unknown if it is not a share of the examples.
    nats = [outcome(name, [2.0, 2.0], "nats", False, order=n, examples=None) for n, name in enumerate("ba")]
    _, (_, own) = said(*nats)
    assert own.startswith("Unclear compared with b: 0 (no interval: no spread, 2 pairs).")


def test_a_margin_is_printed_in_the_unit_of_each_metric():
    made = [
        outcome("dates-a", BASE, margin=0.01),
        outcome("dates-b", [0.95, 0.96, 0.95], order=1),
        outcome("text-a", [2.0, 2.01, 2.0], "bits_per_character", False, order=2),
        outcome("text-b", [2.001, 2.011, 2.0], "bits_per_character", False, order=3),
    ]
    found = [replace(one, experiment={**one.experiment, "comparable_part": one.name[:4]}) for one in made]
    sentences, _ = said(*found)
    assert sentences == ["dates-b is better than dates-a.", "text-b is the same as text-a within 0.01."]
    told = text(basis(comparison(found)))
    assert (
        "The same means that the difference is less than 1 point of exact match, or 0.01 of bits per character." in told
    )
    assert "The same means that the difference is less than 1 point. Better" in text(basis(comparison(found[:2])))
