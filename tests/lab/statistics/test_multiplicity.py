"""Compares Holm's procedure with its definition, and the verdicts of a study with single ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.lab.statistics import compare, difference, holm, verdicts

BASE = np.array([0.50, 0.53, 0.51, 0.48, 0.52])
NOISE = np.array([-0.01, 0.0, 0.01, -0.005, 0.005])


@pytest.mark.parametrize(
    ("pvalues", "rejected"),
    [
        ([], []),
        ([0.05], [True]),
        ([0.01, 0.04, 0.03, 0.005], [True, False, False, True]),  # compared with .0125, .0167 and .025: the third fails
        ([0.04, 0.001], [True, True]),  # the second is compared with .05, and by Bonferroni it would be with .025
        ([0.02, 0.02, 0.02], [False, False, False]),
        ([0.026, 0.03], [False, False]),  # the first fails, so the second does too, although it is below .05
    ],
)
def test_holm_by_hand(pvalues, rejected):
    assert holm(pvalues) == rejected


@given(st.lists(st.floats(0, 0.06), min_size=1, max_size=6))
def test_holm_equals_its_definition(pvalues):
    left = sorted(range(len(pvalues)), key=pvalues.__getitem__)
    while left and pvalues[left[0]] * len(left) <= 0.05:
        left.pop(0)
    assert holm(pvalues) == [n not in left for n in range(len(pvalues))]


def test_bimodal_seeds_need_agreeing_pairs():
    # "split" shows that a seed may end in either cluster. Chance can explain "low", but neither "far" nor "near".
    base, split = [0.990, 0.992, 0.991], [0.991, 0.15, 0.989]
    low, far, near = [0.151, 0.152, 0.149], [-2.0, -2.01, -1.99], [0.980, 0.982, 0.981]
    tried = {"low": low, "far": far, "near": near}
    whole = {"base": base, "split": split} | tried
    found = verdicts({name: (values, base) for name, values in whole.items() if name != "base"}, 1e-4)
    assert {name: one.verdict for name, one in found.items()} == {
        "split": "unclear", "low": "unclear", "far": "worse", "near": "worse",
    }  # fmt: skip
    assert (found["low"].bimodal_gap, found["far"].bimodal_gap) == (pytest.approx(0.839), 0)
    assert found["low"].p == pytest.approx(4 * 2 / 4**3)
    assert (
        found["low"].min_pairs_if_bimodal == 4 == found["low"].seeds_for_difference
    )  # 2/4^4 = .0078 is below .05/4 = .0125
    without = verdicts({name: (values, base) for name, values in tried.items()}, 1e-4)
    assert without["low"].verdict == "worse"
    # Bimodal seeds of another task do not affect the verdict.
    pairs = {name: (values, base) for name, values in whole.items() if name != "base"}
    apart = verdicts(pairs, 1e-4, task_of={"split": "lists"} | dict.fromkeys(tried, "recall"))
    assert (apart["low"].verdict, apart["low"].bimodal_gap) == ("worse", 0)
    assert verdicts(pairs, 1e-4, task_of=dict.fromkeys(pairs, "recall"))["low"].verdict == "unclear"
    # Four pairs are enough for the claim.
    four = {name: np.resize(values, 4) + np.arange(4) * 1e-4 for name, values in whole.items()}
    found = verdicts({name: (values, four["base"]) for name, values in four.items() if name != "base"}, 1e-4)
    assert found["low"].verdict == "worse"


def test_one_variant_needs_no_correction():
    assert verdicts({"a": (BASE + 0.1 + NOISE, BASE)}, 0.02)["a"] == compare(BASE + 0.1 + NOISE, BASE, 0.02)


def test_more_variants_make_each_claim_harder():
    # p of "first" is between .05/8 and .05: significant alone, but not among eight. Intervals are Bonferroni-corrected.
    first = (BASE + 0.012 + NOISE, BASE)
    rest = {f"v{n}": (BASE + 4 * NOISE[::-1] * (-1) ** n, BASE) for n in range(7)}
    alone, among = compare(*first, 1e-4), verdicts({"first": first, **rest}, 1e-4)["first"]
    assert (alone.verdict, among.verdict) == ("better", "unclear")
    assert among.p == pytest.approx(8 * alone.p)
    assert (among.difference, among.low, among.high) == difference(*first, 1 - 0.05 / 8)
    assert among.minimum_detectable_difference > alone.minimum_detectable_difference
    assert among.seeds_for_difference > alone.seeds_for_difference


def test_a_variant_with_both_hypotheses_rejected_no_longer_counts():
    # "small" differs from the base within the margin. Both its hypotheses are rejected, so "next" is tested at .05.
    small, next_ = (BASE + 0.02 + NOISE / 50, BASE), (BASE + 0.009 + NOISE, BASE)
    alone = compare(*next_, 0.1)
    found = verdicts({"small": small, "next": next_}, 0.1)
    assert found["small"].verdict == "same"
    assert found["next"].p == pytest.approx(alone.p)


def test_a_variant_that_is_better_still_counts():
    # "better" may exceed the margin, so its claim "same" can still be false and counts.
    better, next_ = (BASE + 0.2 + NOISE / 50, BASE), (BASE + 0.009 + NOISE, BASE)
    alone = compare(*next_, 1e-4)
    assert verdicts({"better": better, "next": next_}, 1e-4)["next"].p == pytest.approx(2 * alone.p)


@given(st.integers(0, 10_000), st.booleans())
def test_verdicts_are_antisymmetric_in_sides_and_direction(seed, higher):
    draws = np.random.default_rng(seed).normal([[0.0], [0.9]], [[[0.1]], [[1.0]], [[2.0]]], (3, 2, 4))
    there = verdicts({str(n): (a, b) for n, (a, b) in enumerate(draws)}, 0.5, higher=higher)
    back = verdicts({str(n): (b, a) for n, (a, b) in enumerate(draws)}, 0.5, higher=higher)
    turned = {"better": "worse", "worse": "better"}
    for name, one in there.items():
        assert back[name].verdict == turned.get(one.verdict, one.verdict)
        assert (one.p, one.p_same) == pytest.approx((back[name].p, back[name].p_same))
        alone = compare(*draws[int(name)], 0.5, higher=higher)
        assert one.p >= alone.p
        assert one.p_same >= alone.p_same


def test_without_a_margin_each_variant_has_one_hypothesis_and_none_is_equivalent():
    shifts = {"a": 0.02, "b": 0.004, "c": 0.003, "equal": 0.0}
    pairs = {name: (BASE + shift + (NOISE if shift else 0), BASE) for name, shift in shifts.items()}
    found = verdicts(pairs, None)
    alone = [compare(*pair, None).p for pair in pairs.values()]
    assert [found[name].p <= 0.05 for name in pairs] == holm(alone)
    # In Holm's procedure, the second smallest p-value is multiplied by the number of remaining hypotheses.
    first, second = sorted(alone)[:2]
    assert sorted(each.p for each in found.values())[:2] == pytest.approx([4 * first, 3 * second])
    assert found["equal"].verdict == "unclear"
    assert {each.p_same for each in found.values()} == {1.0}
    assert found["a"].seeds_for_margin is None


def test_tried_rates_are_counted_per_variant():
    pairs = {"a": (BASE + 0.02 + NOISE, BASE), "b": (BASE - 0.02 + NOISE, BASE)}
    plain, tried = verdicts(pairs, 0.001), verdicts(pairs, 0.001, tried={"a": (4, 1)})
    assert tried["a"].p == pytest.approx(4 * plain["a"].p)
    assert tried["a"].low < plain["a"].low
    assert tried["a"].high == plain["a"].high
    assert (tried["b"].low, tried["b"].high) == (plain["b"].low, plain["b"].high)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: verdicts({"odd": ([1, 2], [1, 2, 3])}, 0.1), "^odd: a has 2 values"),
        (lambda: verdicts({"few": ([1], [1])}, 0.1), "^few: .*two seeds"),
        (lambda: verdicts({"odd": ({0: 1, 1: 2}, {0: 1, 2: 2})}, 0.1), "^odd: seed 1 is in only one"),
        (lambda: verdicts({"lost": ([1, np.nan], [1, 2])}, 0.1), "^lost: .*finite"),
        (lambda: verdicts({"a": ([1, 2], [1, 2])}, 0.1, tried={"a": (0, 1)}), "^a: tried"),
        (lambda: verdicts({}, 0), "margin"),
        (lambda: verdicts({}, 0.1, 1.0), "level"),
        (lambda: holm([0.1, 1.1]), "p=1.1"),
        (lambda: holm([np.nan]), "p=nan"),
        (lambda: holm([0.1], 95), "level"),
    ],
)
def test_invalid_arguments_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
