import re

import numpy as np
import pytest

from attnlab.lab.reporting.heatmap import LONGEST, breadth, compact, framed, heatmap, small, visible


def test_each_cell_is_as_dark_as_its_weight():
    drawn = heatmap(np.array([[0.25, 0.0], [1.0, -0.01]]), ["a", "b"], ["x", "y"], "map")
    cells = re.findall(r'<rect x="(\d+)" y="(\d+)"[^>]*fill-opacity="([\d.]+)"( class="less")?', drawn)
    assert [(int(x) // 22, int(y) // 22, o, bool(less)) for x, y, o, less in cells] == [
        (0, 0, "0.50", False),
        (0, 1, "1.00", False),
        (1, 1, "0.10", True),
    ]
    assert "y ← a  1.000" in drawn


def test_the_small_heatmap_has_the_same_cells():
    weights = np.array([[0.25, 0.0], [1.0, 0.25]])
    paths = dict(re.findall(r'<path d="([^"]*)" stroke-opacity="([\d.]+)"', small(weights, "x")))
    assert paths == {"M0 0.5h1M1 1.5h1": "0.50", "M0 1.5h1": "1.00"}


def test_neighbouring_cells_of_one_shade_are_one_path():
    drawn = compact(np.array([[0.5, 0.5, 0.0, 0.5], [-0.5, -0.5, -0.5, 0.5]]))
    assert re.findall(r'd="([^"]*)"[^>]*?( class="less")?>', drawn) == [
        ("M0 1.5h3", ' class="less"'),
        ("M0 0.5h2M3 0.5h1M3 1.5h1", ""),
    ]


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" ", "␣"),
        ("é", "é"),
        ("\u0301", "◌\u0301"),
        ("ा", "◌ा"),
        ("\u200f", "·"),
        ("\x00", "·"),
        ("", "·"),
        (" dog", "␣dog"),
        ("\x1b[m", "·[m"),
        (5, "5"),
    ],
)
def test_every_character_can_be_seen(token, shown):
    assert visible(token) == shown


def test_invisible_characters_are_shown_by_code_point_and_escaped():
    drawn = heatmap(np.ones((1, 2)), ["<", "日"], ["&"], "map")
    assert "<title>U+003C LESS-THAN SIGN</title>&lt;</text>" in drawn
    assert "U+65E5" in drawn


def test_long_tokens_are_rotated_and_long_maps_truncated():
    assert "rotate(-90" in heatmap(np.ones((1, 1)), ["<end>"], ["x"], "map")
    long = heatmap(np.full((1, 500), 0.1), ["a"] * 500, ["x"], "map")
    assert long.count("<rect") == LONGEST + 1


def test_a_frame_has_its_declared_width():
    source, target = ["a"] * 7, ["<end>", "b"]
    assert f'viewBox="0 0 {breadth(source, target)} ' in framed(None, source, target, "map")
    assert breadth(["a"] * 500, ["b"]) == breadth(["a"] * LONGEST, ["b"])


def test_a_long_symbol_is_truncated_with_its_full_text_in_the_title():
    word, longer = "orangefarbenen", "donaudampfschifffahrt"
    drawn = heatmap(np.ones((2, 1)), ["a"], [word, longer], "map")
    assert f"<title>{word}</title>{word}</text>" in drawn
    assert f"<title>{longer}</title>donaudampfschifff…</text>" in drawn
