import struct

import numpy as np

from attnlab.lab.reporting import png as pictures
from attnlab.lab.reporting.curves import Curve
from attnlab.lab.reporting.png import answer, learning
from tests.lab.made import outcome
from tests.lab.metrics import declared


def size(png):
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])


def test_the_figure_grows_with_the_number_of_variants_and_is_deterministic():
    found = [outcome(f"v{n}", [0.9, 0.8], order=n) for n in range(9)]
    assert size(answer(found))[1] > size(answer(found[:2]))[1]
    assert answer(found[:2]) == answer(found[:2])
    assert answer([outcome("a", []), outcome("b", [None])]) is None


def test_names_without_font_glyphs_give_no_warnings():
    # These are mathematics, missing glyphs, control characters, a lone surrogate, a name too long, and an underscore.
    names = ["$\\frac{1}$", "\u0301", "\u202e\n\x00", "\ud800", "日" * 99, "_hidden"]
    found = [outcome(name, [0.9, 0.8], order=n) for n, name in enumerate(names)]
    assert size(answer(found))
    curves = [Curve(name, n, np.arange(3), np.ones((3, 2)), ()) for n, name in enumerate(names)]
    assert size(learning([(declared("loss"), "loss $x", curves), (declared("exact_match"), "exact match", curves)]))
    assert learning([]) is None


def test_each_primary_metric_has_axes_of_its_own(monkeypatch):
    monkeypatch.setattr(pictures, "png", lambda figure, dpi: figure)
    found = [outcome("a", [0.9, 0.8]), outcome("b", [2.05, 2.1], "bits", False, order=1), outcome("c", [0.7, 0.75])]
    figure = answer(found)
    figure.draw_without_rendering()
    rates, bits = figure.axes
    assert (rates.get_xlabel(), bits.get_xlabel()) == ("exact match on the test set", "bits on the test set")
    assert [[tick.get_text() for tick in axes.get_yticklabels()] for axes in (rates, bits)] == [["a", "c"], ["b"]]
    assert rates.get_xlim()[1] < 1.5 < bits.get_xlim()[0] + 1
    assert all(tick.get_text().endswith("%") for tick in rates.get_xticklabels())
    assert not any("%" in tick.get_text() for tick in bits.get_xticklabels())


def test_curves_are_in_two_columns(monkeypatch):
    monkeypatch.setattr(pictures, "png", lambda figure, dpi: figure)
    one = [Curve("a", 0, np.arange(3), np.ones((3, 2)), ())]
    for count, rows in ((1, 1), (2, 1), (3, 2), (4, 2)):
        figure = learning([(declared("loss"), f"panel {n}", one) for n in range(count)])
        assert [axes.get_title(loc="left") for axes in figure.axes] == [f"panel {n}" for n in range(count)]
        assert len({axes.get_subplotspec().rowspan.start for axes in figure.axes}) == rows


def test_seeds_with_equal_values_have_no_interval(monkeypatch):
    monkeypatch.setattr(pictures, "png", lambda figure, dpi: figure)
    (axes,) = answer([outcome("a", [1.0, 1.0]), outcome("b", [0.9, 0.8], order=1)]).axes
    assert sum(len(set(line.get_xdata())) == 2 and line.get_marker() == "None" for line in axes.lines) == 1
    assert len(axes.lines) == 5
