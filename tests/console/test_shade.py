import numpy as np
import pytest
from rich.cells import cell_len

from attnlab.console.shade import draw, visible


def test_rows_are_outputs_and_columns_inputs():
    assert draw("abc", "xy", [[1.0, 0.5, 0.0], [0.0, 0.25, 0.75]]) == [
        "  abc",
        "x █▒",
        "y  ░▓",
    ]


def test_heads_and_layers_are_averaged():
    maps = np.zeros((2, 3, 1, 2))
    maps[..., 0] = 1
    maps[1, :, 0] = [0, 1]
    assert draw("ab", "x", maps) == ["  ab", "x ██"]


def test_wide_characters_take_two_cells():
    lines = draw("日a月", "年x", [[1, 0, 1], [0, 1, 0]])
    assert lines == ["   日a月", "年 ██ ██", "x    █"]
    assert cell_len(lines[1]) == cell_len(lines[0])


def test_characters_of_no_width_are_made_visible():
    assert visible(" ") == visible("\t") == "␣"
    assert visible("\u0301") == "◌\u0301"
    assert visible("\u093f") == "◌\u093f"
    assert visible("\x00") == visible("\u200d") == visible("") == "·"
    assert all(cell_len(visible(c)) == 1 for c in ("a", " ", "\n", "\u0301", "\u093f", "\x1b", "é"))
    lines = draw("e\u0301", "x", [[0.0, 1.0]])
    assert cell_len(lines[0]) == cell_len(lines[1]) == 4


def test_symbols_of_several_characters_are_set_apart():
    assert visible(" dog") == "␣dog"
    assert visible("a\x1b[m") == "a·[m"
    assert draw([" the", " dog", "s"], ["les", "∎"], [[1, 0, 0.5], [0, 1, 0]]) == [
        "    ␣the ␣dog s",
        "les ████      ▒",
        "∎        ████",
    ]
    assert draw(["ab", "cd"], "x", [[1.0, 1.0]], width=7) == ["  ab cd", "x ██ ██"]
    assert draw(["ab", "cd"], "x", [[1.0, 1.0]], width=6) == ["  ab", "x ██", "", "  cd", "x ██"]


def test_maps_wider_than_the_terminal_continue_below():
    lines = draw("abcdef", "x", [[1.0] * 6], width=5)
    assert lines == ["  abc", "x ███", "", "  def", "x ███"]
    assert draw("日月", "x", [[1, 1]], width=1) == ["  日", "x ██", "", "  月", "x ██"]


@pytest.mark.parametrize("weights", [[[0.0, 0.0]], [[np.nan, np.inf]], [[-1.0, -2.0]]])
def test_maps_of_zeros(weights):
    assert len(draw("ab", "x", weights)) == 2


def test_nothing_to_draw():
    assert draw("ab", "", np.zeros((0, 2))) == [" ab"]


def test_maps_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="does not fit 1 rows and 3 columns"):
        draw("abc", "x", [[1.0, 0.0]])
