"""Simulated studies: intervals cover, equal variants rarely differ significantly, and power is as computed."""

import math

import pytest

from attnlab.lab.statistics import power
from tests.lab import coverage
from tests.lab.coverage import ALIKE, LEARN, NAMES, PROFILES, SEEDS, STUDIES, TUNED

# The standard error of a share of 5% in 2,000 studies is .5%. 5.9% is nearly two of them above 5%.
RARE = 0.059 * STUDIES
cases = pytest.mark.parametrize(("name", "seeds"), [(name, seeds) for name in NAMES for seeds in SEEDS])


@cases
def test_intervals_cover(name, seeds):
    assert 0.93 * STUDIES <= coverage.covered(name, seeds) <= 0.97 * STUDIES


@cases
def test_equal_variants_are_rarely_called_different(name, seeds):
    assert coverage.told_apart(name, seeds) <= RARE


@pytest.mark.parametrize("learn", LEARN)
def test_equal_variants_with_bimodal_seeds_are_rarely_called_different(learn):
    assert coverage.leapt_apart(learn, 3, 7, 200) <= RARE / STUDIES * 200


def test_without_bimodality_check_they_are_often_called_different(monkeypatch):
    monkeypatch.setattr("attnlab.lab.statistics.samples.GAP_RATIO", math.inf)
    assert coverage.leapt_apart(0.5, 3, 7, 200) > RARE / STUDIES * 200


@pytest.mark.slow
@pytest.mark.parametrize("learn", LEARN)
@pytest.mark.parametrize("variants", [1, 2, 7])
@pytest.mark.parametrize("seeds", SEEDS)
def test_many_equal_variants_with_bimodal_seeds_are_rarely_called_different(learn, variants, seeds):
    assert coverage.leapt_apart(learn, seeds, variants) <= RARE


def test_without_correction_they_are_often_called_different():
    assert coverage.told_apart("normal", 5, 300, corrected=False) > 0.1 * 300


@pytest.mark.parametrize("seeds", SEEDS)
def test_power_is_as_computed(seeds):
    expected, studies = power(2.0, math.sqrt(2), seeds), 500
    error = math.sqrt(expected * (1 - expected) / studies)
    assert abs(coverage.found("normal", seeds, 2.0, studies) / studies - expected) <= 3.5 * error + 1 / studies


def test_tuned_intervals_cover_where_ordinary_ones_do_not():
    assert coverage.tuned_covered("normal", 10, ALIKE * 2, 400) >= 0.93 * 400
    assert coverage.tuned_covered("normal", 10, ALIKE * 2, 400, corrected=False) < 0.91 * 400


@pytest.mark.slow
@cases
def test_false_equivalence_claims_are_rare(name, seeds):
    assert coverage.wrongly_claimed(name, seeds) <= RARE


@pytest.mark.slow
@cases
@pytest.mark.parametrize("rates", PROFILES.values(), ids=PROFILES)
def test_tuned_intervals_cover(name, seeds, rates):
    assert coverage.tuned_covered(name, seeds, rates) >= 0.93 * STUDIES


@pytest.mark.slow
@cases
@pytest.mark.parametrize(("rates", "others"), TUNED.values(), ids=TUNED)
def test_equal_tuned_variants_are_rarely_called_different(name, seeds, rates, others):
    assert coverage.tuned_apart(name, seeds, rates, others) <= RARE


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS)
def test_intervals_cover_in_many_more_settings(seeds):
    studies = 20_000
    error = math.sqrt(0.95 * 0.05 / studies)
    assert abs(coverage.covered("normal", seeds, studies) / studies - 0.95) <= 3.5 * error
