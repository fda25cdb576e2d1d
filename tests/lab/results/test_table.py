"""The tables of the terminal and of the page contain the same cells, which are made from result.json."""

import io
import re

import pytest
from rich.console import Console

from attnlab.lab.reporting.page import page
from attnlab.lab.results.comparison import comparison
from attnlab.lab.results.outcome import outcomes
from attnlab.lab.results.table import results_table, sheets
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from tests.lab.synthetic import retell, rewrite, write_run, write_study


def printed(folder) -> str:
    file = io.StringIO()
    Console(file=file, width=200).print(results_table(folder))
    return file.getvalue()


def table_of(found):
    """Returns the heads and the rows of the table of a study whose variants have one primary metric."""
    (sheet,) = sheets(found)
    assert sheet.variants == [outcome for outcome in found if outcome.begun]
    return sheet.heads, sheet.rows


def test_values_equal_those_of_the_file(tmp_path):
    write_study(tmp_path, {"softmax": {"mean": 0.95}}, steps=40)
    found = outcomes(tmp_path)
    heads, ((primary, loss, *costs, diverged),) = table_of(found)
    assert heads[:3] == ["exact match", "loss", "parameters"]
    assert heads[3:] == [
        "training FLOPs",
        "decoding state",
        "peak memory",
        "time per step",
        "training time",
        "diverged lanes",
    ]
    result = RunFolder(tmp_path / "softmax").read("result") or {}
    estimate = result["metrics"]["exact_match"]
    assert primary.text == f"{100 * estimate['mean']:.1f}%"
    assert primary.note == f"{100 * estimate['low']:.1f}–{100 * estimate['high']:.1f}%"
    assert repr(estimate["mean"]) in primary.exact
    assert all(repr(value) in primary.exact for value in estimate["values"])
    assert loss.text == f"{result['metrics']['loss']['mean']:.3g}"
    exact = [cell.exact for cell in costs]
    assert exact == ["312456", "64800000000.0", "24576.0", "48500000.0", "0.0953", "143.2"]
    notes = [cell.note for cell in costs]
    assert notes == ["", "1.62 GFLOP per step", "", "1.43 GB process", "40 steps", "21.4 s compiling"]
    assert diverged.text == "0 of 3"


def test_the_terminal_shows_the_same_values(tmp_path):
    write_study(tmp_path, {"softmax": {}, "linear": {"diverged": (0,)}, "delta": {"finished": False}}, steps=40)
    text = printed(tmp_path)
    found = outcomes(tmp_path)
    for outcome, cells in zip(found, table_of(found)[1], strict=True):
        assert outcome.name in text
        for cell in cells:
            assert cell.text.split(",")[0] in text
    assert "1 of 3" in text


def test_older_folders_have_no_compiler_memory(tmp_path):
    write_study(tmp_path, {"linear": {}, "softmax": {}}, steps=40)
    for name, has in (("softmax", True), ("linear", False)):
        run = RunFolder(tmp_path / name)
        run.write("result", {key: x for key, x in (run.read("result") or {}).items() if key != "memory_bytes"})
        found = outcomes(tmp_path)
        heads, rows = table_of(found)
        # A number that no variant has gets no column.
        assert ("peak memory" in heads) == has
        if has:
            cells = {one.name: row[heads.index("peak memory")] for one, row in zip(found, rows, strict=True)}
            assert cells["softmax"].text == "–"
            assert float(cells["linear"].exact) > 0


def test_verdicts_are_next_to_the_primary_metric(tmp_path):
    write_study(tmp_path, {"softmax": {"mean": 0.99}, "linear": {"mean": 0.5}, "delta": {"finished": False}}, steps=40)
    heads, rows = table_of(outcomes(tmp_path))
    assert heads[1] == "verdict"
    assert [row[1].text for row in rows] == ["reference", "worse", "–"]
    write_study(tmp_path / "one", {"softmax": {}, "linear": {}}, seeds=(1,), steps=40)
    assert "verdict" not in table_of(outcomes(tmp_path / "one"))[0]


def test_many_variants_fit_eighty_columns_by_their_primary_metric(tmp_path):
    names = ["softmax", "linear", "delta", "gated-linear", "retention"]
    write_study(tmp_path, {name: {} for name in names}, steps=40)
    file = io.StringIO()
    Console(file=file, width=80).print(results_table(tmp_path))
    for outcome, cells in zip(outcomes(tmp_path), table_of(outcomes(tmp_path))[1], strict=True):
        (line,) = [line for line in file.getvalue().splitlines() if line.split()[:1] == [outcome.name]]
        assert f"{cells[0].text} ({cells[0].note})" in line


@pytest.mark.parametrize("name", ["[red]x[/red]", "[/]", "日本", ":smile:"])
def test_names_are_printed_as_they_are(tmp_path, name):
    name = name.replace("/", "")
    write_run(tmp_path / name, name, steps=40)
    assert name in printed(tmp_path)


def test_no_results(tmp_path):
    with pytest.raises(FolderError):
        results_table(tmp_path)


def test_a_band_reports_whether_the_mean_is_inside(tmp_path):
    means = {"softmax": 0.95, "linear": 0.9, "window": 0.8, "delta": 0.7}
    variants = {name: {"mean": mean} for name, mean in means.items()}
    assert "band" not in table_of(outcomes(write_study(tmp_path / "none", variants, steps=40)))[0]
    variants["softmax"]["band"], variants["linear"]["band"] = (0.94, None), (0.8, 0.85)
    variants["window"]["band"] = (None, "much")
    heads, rows = table_of(outcomes(write_study(tmp_path / "some", variants, steps=40)))
    cells = [row[heads.index("band")] for row in rows]
    assert [(cell.text, cell.note) for cell in cells] == [
        ("≥ 94.0%", "inside"),
        ("80.0% to 85.0%", "outside"),
        ("–", ""),
        ("–", ""),
    ]


def test_a_preview_is_not_compared_with_published_values(tmp_path):
    told = {"band": (0.94, None), "published": 0.987}
    variants = {"softmax": {"mean": 0.95, **told}, "linear": {"mean": 0.1, "quick": True, **told}}
    heads, rows = table_of(outcomes(write_study(tmp_path, variants, steps=40)))
    cells = [[row[heads.index(name)].text for name in ("published", "band")] for row in rows]
    assert cells == [["98.7%", "≥ 94.0%"], ["–", "–"]]


def test_published_values_are_next_to_the_primary_metric(tmp_path):
    variants = {"softmax": {"mean": 0.95}, "linear": {"mean": 0.9}}
    assert "published" not in table_of(outcomes(write_study(tmp_path / "none", variants, steps=40)))[0]
    variants["softmax"]["published"] = 0.987
    write_study(tmp_path, variants, steps=40)
    heads, (softmax, linear) = table_of(outcomes(tmp_path))
    assert heads[:4] == ["exact match", "verdict", "published", "loss"]
    assert (softmax[2].text, softmax[2].exact) == ("98.7%", "0.987")
    assert linear[2].text == "–"
    assert "98.7%" in printed(tmp_path)
    assert "98.7%" in page(outcomes(tmp_path), "study")


@pytest.fixture
def mixed(tmp_path):
    """Returns a study of two variants measured by a rate, two measured by bits, and one that has not finished."""
    variants = {
        "dates-softmax": {"mean": 0.9},
        "text-softmax": {"mean": 0.82},
        "dates-linear": {"mean": 0.8},
        "text-linear": {"mean": 0.7, "band": (1.7, 1.8), "published": 1.71},
        "late": {"finished": False},
    }
    home = write_study(tmp_path / "mixed", variants, steps=40, groups=("de",))
    for name in ("text-softmax", "text-linear"):
        retell(RunFolder(home / name), "bits_per_character", 2.5)
    return home


def test_each_primary_metric_has_a_table_of_its_own(mixed):
    dates, text, late = sheets(outcomes(mixed))
    assert [one.name for one in dates.variants] == ["dates-softmax", "dates-linear"]
    assert [one.name for one in text.variants] == ["text-linear", "text-softmax"]
    assert (dates.title, dates.heads[:2]) == ("exact match", ["exact match", "loss"])
    assert (text.title, text.heads[:4]) == ("bits per character", ["bits per character", "published", "band", "loss"])
    for sheet, unit in ((dates, "%"), (text, "")):
        for outcome, (primary, *_) in zip(sheet.variants, sheet.rows, strict=True):
            mean = outcome.primary.mean
            assert primary.text == (f"{100 * mean:.1f}%" if unit else f"{mean:#.3g}")
            assert ("%" in primary.note) == bool(unit)
    assert (text.rows[0][1].text, text.rows[0][2].text) == ("1.71", "1.70 to 1.80")
    # The primary metric of the unfinished variant is not known.
    assert (late.title, late.heads, late.rows[0][0].text) == ("not finished", ["state"], "unfinished, 10 of 40 steps")
    text = printed(mixed)
    assert re.findall("mixed: (.*?) *\n", text) == ["exact match", "bits per character", "not finished"]
    assert "bits" not in text.split("mixed: bits")[0]
    assert "exact match" not in text.split("mixed: bits")[1]


def test_verdicts_of_several_metrics_are_corrected_for_each_other(mixed):
    for task in ("dates", "text"):
        for kind in ("softmax", "linear"):
            run = RunFolder(mixed / f"{task}-{kind}")
            rewrite(run, {**(run.read("experiment") or {}), "comparable_part": {"task": task}})
    found = outcomes(mixed)
    assert {one.comparisons for one in comparison(found).verdicts.values()} == {2}
    dates, text, _ = sheets(found)
    assert [[row[1].text for row in sheet.rows] for sheet in (dates, text)] == [
        ["reference", "worse"],
        ["better", "reference"],
    ]


def test_seeds_with_equal_values_have_no_interval(tmp_path):
    write_study(tmp_path, {"softmax": {"mean": 1.0, "spread": 0.0}}, steps=40)
    _, (row,) = table_of(outcomes(tmp_path))
    assert (row[0].text, row[0].note) == ("100.0%", "no spread")
    assert "100.0% (no spread)" in printed(tmp_path)


def test_the_selected_rate_is_in_the_table_if_several_were_tried(tmp_path):
    write_study(tmp_path, {"softmax": {"rates": (1e-3, 3e-3)}, "linear": {"rates": (1e-3, 3e-3)}}, steps=40)
    heads, rows = table_of(outcomes(tmp_path))
    chosen = [row[heads.index("learning rate")] for row in rows]
    results = [RunFolder(tmp_path / name).read("result") or {} for name in ("softmax", "linear")]
    assert [(cell.text, cell.note) for cell in chosen] == [(f"{one['learning_rate']:g}", "of 2") for one in results]
    assert "learning rate" in printed(tmp_path)


def test_a_single_rate_has_no_row(tmp_path):
    write_study(tmp_path, {"softmax": {}}, steps=40)
    assert "learning rate" not in printed(tmp_path)
