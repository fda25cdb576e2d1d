"""Checks that the picture in the README shows the values of docs/results.md and is drawn from the current data."""

import ast
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
RESULTS = (ROOT / "docs" / "results.md").read_text()
README = (ROOT / "README.md").read_text()
DRAW = runpy.run_path(str(PICTURES / "draw.py"))
ROWS = DRAW["load"]()
# Names in docs/results.md of mechanisms with a state of constant size, by feature map or by update rule.
MAPS = {"elu+1", "exp", "ReLU", "squared ReLU", "identity", "Hedgehog", "Performer", "FAVOR+", "Taylor", "cosFormer"}
RULES = {"delta", "gated-delta", "KDA", "gated-linear", "SSD", "retention", "lightning", "fast-weight"}
VALUE = re.compile(r"([\d.]+)%? \(([\d.]+)–([\d.]+)\)")

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["task"])


def section(row):
    return re.split(r"^#{2,3} ", RESULTS.split(f"\n### {row['heading']}\n")[1], flags=re.M)[0]


def table(row):
    """Returns the first table of the section: for each mechanism, a dictionary of columns."""
    lines = re.search(r"(?:^\|.*\n)+", section(row), re.M)[0].splitlines()
    head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {cells[0]: dict(zip(head[1:], cells[1:], strict=True)) for cells in body}


def measured(cells):
    """Returns the mean and the ends of the interval as printed, or None if no interval is recorded."""
    found = [match.groups() for cell in cells.values() if (match := VALUE.fullmatch(cell))]
    return found[0] if found else None


def docstring(row):
    return " ".join(ast.get_docstring(ast.parse((ROOT / row["experiment"]).read_text())).split())


@each_row
def test_values_are_those_of_the_results(row):
    cells = table(row)
    for value in row["values"]:
        assert tuple(str(value[end]) for end in ("mean", "low", "high")) == measured(cells[value["mechanism"]])
        assert "Verdict" not in cells or value["verdict"] == cells["Verdict"]
    text = " ".join(section(row).split())
    assert f" {row['seeds']} seeds" in text
    command = " ".join(["attnlab run", row["experiment"], row["settings"]]).strip()
    assert f"`{command}`" in text or f"`{command} --workers 2`" in text
    assert ("lower is better" in text) == (row["better"] == "lower")


@each_row
def test_verdicts_are_those_of_the_results_or_of_the_docstring(row):
    for value in row["values"]:
        written = table(row)[value["mechanism"]].get("Verdict", "–")
        if "verdict_in_docstring" in row and value["part"] != "softmax":
            assert written == "–"
            assert row["verdict_in_docstring"] in docstring(row)
        elif value["part"] == "softmax":
            assert value["verdict"] == "baseline"
            assert written in ("baseline", "–")
        else:
            assert (value["verdict"] or "–") == written


@each_row
def test_remeasured_values_are_marked(row):
    marks = re.findall(r"\*\*To be measured again:\*\* (.*?)\.\s", section(row), re.S)
    for value in row["values"]:
        again = any(mark.startswith("all values") or value["mechanism"] in re.split(r"[ ,]+", mark) for mark in marks)
        assert value["older_harness"] == again, value


@each_row
def test_the_third_value_is_the_best_of_the_linear_family(row):
    merit = lambda mean: float(mean) if row["better"] == "higher" else -float(mean)
    others = {name: measured(cells) for name, cells in table(row).items() if name in MAPS | RULES}
    parts = {value["part"]: value for value in row["values"]}
    plain = parts["linear"]
    better = {name: each for name, each in others.items() if each and merit(each[0]) > merit(plain["mean"])}
    best = max(better, key=lambda name: merit(better[name][0]), default=None)
    assert best == parts.get("other linear", {}).get("mechanism")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pictures_are_drawn_from_these_data(theme):
    path = PICTURES / f"softmax_or_linear_{theme}.svg"
    assert path.stat().st_size < 80_000
    # Viewers lack fonts, so letters are paths.
    assert not ElementTree.parse(path).findall(".//{http://www.w3.org/2000/svg}text")
    # The pictures carry a digest of the data and of the script.
    assert DRAW["digest"]() in path.read_text(), "run python docs/pictures/draw.py"
    assert f"docs/pictures/{path.name}" in README


def test_no_value_is_outside_its_scale():
    for row in ROWS:
        low, high = sorted(DRAW["SCALES"][row["unit"]][:2])
        assert all(low <= value[end] <= high for value in row["values"] for end in ("low", "mean", "high")), row["task"]


def test_the_alternative_text_states_the_answer():
    alt = re.search(r'alt="([^"]*)"', README)[1]
    assert DRAW["texts"](ROWS)["answer"].replace("\n", " ") in alt
    groups = [DRAW["group"](row) for row in ROWS]
    assert f"{groups.count('unclear')} comparisons are unclear and {groups.count('none')} have no verdict" in alt
    seeds = sorted(row["seeds"] for row in ROWS)
    assert f"the mean of {seeds[0]} to {seeds[-1]} seeds" in README
