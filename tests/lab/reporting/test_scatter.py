import re
from dataclasses import replace
from itertools import pairwise

import pytest

from attnlab.lab.reporting.scatter import Point, Series, panels, scatter
from attnlab.lab.results.estimates import Estimate
from tests.lab.metrics import declared

# A mean has an edge in the colour of the page, a ring has no fill, and an interval is a line.
DOT = r'<use [^>]*x="([\d.]+)" y="([\d.]+)" style="fill:currentColor;stroke:var\(--page\)'
RING = 'style="fill-opacity:0'
SPAN = "stroke-opacity:0.4"
CROSS = r'<use [^>]*y="([\d.]+)" style="[^"]*stroke-width:1.6'


def number(x):
    return f"{x:g}"


def point(x, mean, reach=0.1, values=None, **more):
    values = (mean,) if values is None else values
    return Point(x, Estimate(mean, mean - reach, mean + reach, values), **more)


def drawn(*series, metric="loss", higher=False):
    return scatter(replace(declared(metric), higher=higher), series, number, "label")


def crosses(markup):
    """Returns the vertical positions of the crosses."""
    return [float(y) for y in re.findall(CROSS, markup)]


def test_points_are_at_their_values():
    series = [Series(f"v{n}", n, (point(x, y),)) for n, (x, y) in enumerate([(1, 1.0), (10, 2.0), (100, 3.0)])]
    markup = drawn(*series)
    x, y = zip(*[map(float, place) for place in re.findall(DOT, markup)], strict=True)
    # Equal ratios of x and equal differences of y have equal distances. Larger values have a smaller y in pixels.
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.02)
    assert y[0] - y[1] == pytest.approx(y[1] - y[2], abs=0.2)
    assert y[0] > y[1]
    assert markup.count(RING) == 3
    assert markup.count(SPAN) == 3


def test_each_variant_is_named_and_names_are_escaped():
    markup = drawn(Series("<b>", 0, (point(1, 1.0),)), Series("y" * 40, 1, (point(2, 2.0),)))
    assert "&lt;b&gt;</text>" in markup
    assert "y" * 17 + "…</text>" in markup
    assert "<b>" not in markup


def test_equal_points_are_drawn_side_by_side():
    series = [Series(f"v{n}", n, (point(5, 1.0),)) for n in range(3)]
    x = [float(x) for x, _ in re.findall(DOT, drawn(*series))]
    assert [b - a for a, b in pairwise(x)] == pytest.approx([5, 5], abs=0.02)
    x = [float(x) for x, _ in re.findall(DOT, drawn(*[Series(f"v{n}", n, (point(10**n, 1.0),)) for n in range(3)]))]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.02)
    assert x[1] - x[0] > 100


def test_variants_without_value_are_crosses():
    lost = Point(1, Estimate(None, None, None, (None, 0.5)))
    markup = drawn(Series("a", 0, (lost, point(10, 1.0, diverged=2))))
    assert len(crosses(markup)) == 2
    assert len(re.findall(DOT, markup)) == 1
    assert "a: no value" in markup
    assert "2 diverged" in markup
    # The cross is at the bad end of the metric, which is the top if lower is better.
    above, below = (
        crosses(drawn(Series("a", 0, (lost, point(10, 1.0))), higher=higher))[0] for higher in (False, True)
    )
    assert above < below


def test_a_panel_draws_one_variant_in_colour_and_the_others_in_grey():
    series = [Series(f"v{n}", n, (point(1, 1.0), point(10, 2.0))) for n in range(3)]
    first, second, _ = panels(declared("loss"), series, number, "label ")
    assert 'aria-label="label v1"' in second
    assert len(re.findall(DOT, second)) == 2
    assert second.count("stroke-opacity:0.6") == 3  # its line, and the ring of each seed
    # The page contains the grey lines once.
    (shared,) = re.findall('<g id="([^"]*)" class="shared">', first)
    assert first.count("stroke:var(--grid);stroke-width:1.2") == 3
    assert second.count(f'<use href="#{shared}">') == 1
    assert "var(--grid)" not in second


def test_only_tick_labels_with_room_are_drawn():
    series = [Series("a", 0, tuple(point(x, 1.0) for x in (1.0, 1.01, 2.0, 100.0)))]
    (markup,) = panels(declared("loss"), series, number, "label")
    assert [x for x in ("1", "1.01", "100") if f">{x}</text>" in markup] == ["1", "100"]


@pytest.mark.parametrize("mean", [0.0, 1e99, -1e99])
def test_an_axis_of_no_width_is_drawn(mean):
    one = Series("a", 0, (Point(3.0, Estimate(mean, None, None, (mean,))),))
    for metric in ("loss", "exact_match"):
        assert "nan" not in drawn(one, metric=metric)


def test_seeds_with_equal_values_have_no_interval_and_a_note():
    markup = drawn(Series("a", 0, (point(1, 1.0, 0.0, (1.0, 1.0)),)), Series("b", 1, (point(2, 2.0),)))
    assert markup.count(SPAN) == 1
    assert "a: 1.00, no spread" in markup
    assert "b: 2.00, 1.90–2.10" in markup
