import re

import pytest

from attnlab.lab.reporting.scatter import Point, Series, alone, frame, scatter
from attnlab.lab.results.estimates import Estimate
from tests.lab.metrics import declared


def point(x, mean, reach=0.1, values=None, **more):
    values = (mean,) if values is None else values
    return Point(x, Estimate(mean, mean - reach, mean + reach, values), **more)


def drawn(*series, metric="loss", higher=False):
    return scatter(frame(declared(metric), higher, series), series, lambda x: f"{x:g}", "label")


def test_points_stand_where_their_numbers_are():
    series = [Series(f"v{n}", n, (point(x, y),)) for n, (x, y) in enumerate([(1, 1.0), (10, 2.0), (100, 3.0)])]
    markup = drawn(*series)
    x = [float(v) for v in re.findall(r'<svg x="([\d.]+)%" overflow="visible"><title>', markup)]
    y = [float(v) for v in re.findall(r'cy="([\d.]+)" r="5"', markup)]
    # Equal factors across and equal steps up are equally far; up is less in pixels.
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.02)
    assert y[0] - y[1] == pytest.approx(y[1] - y[2], abs=0.2)
    assert y[0] > y[1]
    assert markup.count('class="ring"') == 3
    assert markup.count('class="reach"') == 3


def test_each_variant_is_named_and_names_are_escaped():
    markup = drawn(Series("<b>", 0, (point(1, 1.0),)), Series("y" * 40, 1, (point(2, 2.0),)))
    assert "&lt;b&gt;</text>" in markup
    assert "y" * 17 + "…</text>" in markup
    assert "<b>" not in markup


def test_variants_at_one_place_stand_side_by_side():
    series = [Series(f"v{n}", n, (point(5, 1.0),)) for n in range(3)]
    assert re.findall(r'<g transform="translate\((\S+) 0\)" class="v', drawn(*series)) == ["-5", "5"]
    assert "translate(-5 0)" not in drawn(*[Series(f"v{n}", n, (point(10**n, 1.0),)) for n in range(3)])


def test_what_has_no_number_is_a_cross_and_never_a_dot():
    lost = Point(1, Estimate(None, None, None, (None, 0.5)))
    markup = drawn(Series("a", 0, (lost, point(10, 1.0, diverged=2))))
    assert markup.count('class="cross"') == 2
    assert markup.count('class="dot"') == 1
    assert "a: no value" in markup
    assert "2 diverged" in markup
    # At the bad end of the metric: above where less is better.
    ends = [re.findall(r'd="M-3.5 ([\d.]+)', drawn(Series("a", 0, (lost, point(10, 1.0))), higher=h)) for h in (0, 1)]
    assert float(ends[0][0]) < float(ends[1][0])


def test_a_panel_draws_one_in_colour_and_the_tracks_of_the_rest():
    series = [Series(f"v{n}", n, (point(1, 1.0), point(10, 2.0))) for n in range(3)]
    markup = alone(frame(declared("loss"), False, series, 165, 120), series[1], series, str, "label")
    assert markup.count('class="dot"') == 2
    assert markup.count('class="behind"') == 2
    assert markup.count('class="track"') == 3


def test_only_numbers_that_have_room_are_written():
    series = [Series("a", 0, tuple(point(x, 1.0) for x in (1.0, 1.01, 2.0, 100.0)))]
    assert frame(declared("loss"), False, series).ticked([1.0, 1.01, 100.0]).across.ticks == (1.0, 100.0)


@pytest.mark.parametrize("mean", [0.0, 1e99, -1e99])
def test_no_width_is_no_trouble(mean):
    one = Series("a", 0, (Point(3.0, Estimate(mean, None, None, (mean,))),))
    for metric in ("loss", "exact_match"):
        assert "nan" not in drawn(one, metric=metric)


def test_seeds_that_show_no_spread_have_no_line_and_it_is_said():
    markup = drawn(Series("a", 0, (point(1, 1.0, 0.0, (1.0, 1.0)),)), Series("b", 1, (point(2, 2.0),)))
    assert markup.count('class="reach"') == 1
    assert "a: 1.00, no spread" in markup
    assert "b: 2.00, 1.90–2.10" in markup
