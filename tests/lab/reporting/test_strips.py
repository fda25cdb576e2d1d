import re
from itertools import pairwise

import pytest

from attnlab.lab.reporting.strips import Mark, strips
from attnlab.lab.results.estimates import Estimate
from tests.lab.metrics import declared


def drawn(metric, *estimates, seeds=True):
    return strips(declared(metric), [("row", [Mark(Estimate(*e), n, f"v{n}")]) for n, e in enumerate(estimates)], seeds)


def places(markup, kind):
    return [float(x) for x in re.findall(rf'<circle cx="([\d.]+)%"[^>]*class="{kind}"', markup)]


def test_marks_are_at_their_values():
    markup = drawn("loss", (2.0, 1.0, 3.0, (1.0, 2.0, 3.0)), (5.0, 4.0, 6.0, (4.0, 5.0, 6.0)))
    # Both strips share one axis, so equal differences have equal widths.
    rings = places(markup, "ring")
    widths = [b - a for a, b in pairwise(rings)]
    assert widths == pytest.approx([widths[0]] * 5, abs=0.02)
    assert places(markup, "dot") == [rings[1], rings[4]]


def test_an_interval_of_a_rate_is_clipped_to_its_range():
    markup = drawn("exact_match", (0.99, 0.97, 1.01, (0.98, 1.0)))
    end = float(re.findall(r'x2="([\d.]+)%"[^>]*class="reach"', markup)[0])
    assert end == max(places(markup, "ring"))
    assert "101%" not in markup


@pytest.mark.parametrize(
    "estimate", [(1.0, None, None, (1.0,)), (0.0, 0.0, 0.0, (0.0, 0.0)), (1e99, -1e99, 1e99, (1e99, -1e99))]
)
def test_an_axis_of_no_width_is_drawn(estimate):
    for metric in ("loss", "exact_match"):
        assert "nan" not in drawn(metric, estimate)


def test_invalid_values_are_reported_and_not_drawn():
    markup = drawn("loss", (None, None, None, (None, 1.0)), (1.0, 0.5, 1.5, (1.0, 1.0)))
    assert len(places(markup, "dot")) == 1
    assert "v0 failed" in markup


def test_seeds_with_equal_values_have_no_interval_and_a_note():
    markup = drawn("exact_match", (1.0, 1.0, 1.0, (1.0, 1.0)), (0.9, 0.8, 1.0, (0.89, 0.91)))
    assert markup.count('class="reach"') == 1
    assert "v0: 100.0%, no spread" in markup
    assert "v1: 90.0%, 80.0–100%" in markup
