"""Tests that the tables of `inspect` contain every number in its place, and no missing ones."""

import io

import numpy as np
import pytest
from rich.console import Console

from attnlab.lab.trained.inspect_tables import MOST, attentions, distance, legend, percent, small, tables, training
from tests.lab.looked import FOUND, found


def shown(found, width=80):
    stream = io.StringIO()
    console = Console(file=stream, width=width)
    for table in tables(found):
        console.print(table)
    return stream.getvalue()


def test_the_statistics_of_every_head():
    grids = attentions(FOUND)
    assert list(grids) == ["encoder", "cross"]
    grid = grids["encoder"]
    assert grid.title == "encoder: linear, 2 × 3"
    heads = [
        "layer",
        "head",
        "rank\nof 2",
        "entropy\nof 1.10",
        "relative\nentropy",
        "reach\ntokens",
        "from\nsoftmax",
        "least\ntotal",
    ]
    assert grid.heads == heads
    assert grid.rows == [
        ["1", "1", "1.50", "0.500", "46%", "0.750", "0.250", "3.0e-6"],
        ["1", "2", "–", "–", "–", "–", "–", "–"],
    ]
    assert grid.notes == [
        "Some weights are negative. Entropy and reach use their absolute values.",
        "Up to 2 rows of a map have no weight. The means exclude them.",
    ]


def test_a_softmax_map_is_not_compared_with_itself():
    grid = attentions(FOUND)["cross"]
    assert (len(grid.heads), [len(row) for row in grid.rows], grid.notes) == (6, [6], [])


def test_layers_of_a_hybrid_are_named_by_their_mechanism():
    seen = FOUND["attentions"]["cross"]
    two = {"mechanism": "linear+softmax", "mechanisms": ["linear", "softmax"], "statistics": seen["statistics"] * 2}
    grid = attentions(FOUND | {"attentions": {"cross": seen | two}})["cross"]
    assert grid.heads[:3] == ["layer", "mechanism", "head"]
    assert [row[:3] for row in grid.rows] == [["1", "linear", "1"], ["2", "softmax", "1"]]
    assert grid.words == 3


def test_every_checkpoint_has_a_column():
    statistics, flows = training(FOUND)
    assert statistics.heads == ["", "", "step\n6", "step\n1,200"]
    assert statistics.rows == [
        ["loss", "", "2.00", "1.00"],
        ["variance of scores", "encoder 1", "1.00", "3.00"],
        ["", "cross 1", "–", "–"],
        ["effective rank", "encoder 1", "1.20", "1.30"],
        ["", "cross 1", "1.20", "1.30"],
        ["relative entropy", "encoder 1", "40%", "30%"],
        ["", "cross 1", "40%", "30%"],
        ["reach", "encoder 1", "0.500", "0.600"],
        ["", "cross 1", "0.500", "0.600"],
        ["from softmax", "encoder 1", "0.200", "0.100"],
    ]
    assert flows.heads == ["", "norm of\nparameters", "step\n6", "step\n1,200"]
    assert flows.rows == [["encoder 1 attention", "4.00", "0.500", "5.0e-5"], ["output", "2.00", "0.100", "0.200"]]


def test_many_checkpoints_are_thinned_for_a_terminal_and_it_says_so():
    many = found(steps=range(0, 1001, 100))
    statistics, flows = training(many, MOST)
    assert statistics.heads[2:] == flows.heads[2:] == [f"step\n{n:,}" for n in (0, 200, 400, 600, 800, 1000)]
    for grid in (statistics, flows):
        assert grid.notes[-1] == "6 of 11 checkpoints are shown; --json and --html contain all of them."
    assert len(training(many)[0].heads) == 2 + 11
    assert max(map(len, shown(many).splitlines())) <= 80


def test_the_distance_from_another_run():
    assert distance(FOUND | {"distance": None}) == []
    (grid,) = distance(FOUND)
    assert grid.title == "distance from the maps of small/two"
    assert grid.heads == ["", "layer", "mean of\nheads", "head\n1", "head\n2"]
    # An attention with fewer heads than another has empty cells.
    assert grid.rows == [["encoder", "1", "0.100", "0.200", "0.300"], ["cross", "1", "0.400", "0.500", ""]]
    assert grid.notes[-1] == "decoder is not compared: layers × heads are none here and 1 × 2 in the other run"


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_a_terminal(width):
    text = shown(FOUND | {"notes": ["unfinished [bold]"]}, width)
    assert text.startswith("unfinished [bold]\n")
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for title in (
        "encoder: linear, 2 × 3",
        "cross: softmax, 2 × 3",
        "during training",
        "norm of the loss gradient",
        "two",
    ):
        assert title in text
    assert text.count("1,200") == 2


def test_a_legend_explains_the_shown_columns():
    text = shown(FOUND, 120)
    for word in ("rank: ", "\nentropy: ", "\nrelative entropy: ", "reach: ", "from softmax: ", "least total: "):
        assert text.count(word) == 1
    softmax = {**FOUND, "attentions": {"cross": FOUND["attentions"]["cross"]}}
    assert [line.partition(":")[0] for line in legend(softmax)] == ["rank", "entropy", "relative entropy", "reach"]


def test_a_zero_has_no_sign():
    assert (small(-0.0), percent(-0.0), percent(-0.001)) == ("0.00", "0%", "0%")
    assert small(-0.25) == "-0.250"


def test_undefined_statistics_are_left_empty():
    assert "nan" not in shown(FOUND)
    assert np.isnan(FOUND["attentions"]["encoder"]["statistics"][0][1]["rank"])
