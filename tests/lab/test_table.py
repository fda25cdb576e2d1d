"""The terminal's table and the page's are made from the same cells, and these from result.json."""

import io

import pytest
from rich.console import Console

from attnlab.lab.folder import FolderError, RunFolder
from attnlab.lab.outcome import outcomes
from attnlab.lab.reporting.page import page
from attnlab.lab.table import results_table, table_of
from tests.lab.synthetic import write_run, write_study


def printed(folder) -> str:
    file = io.StringIO()
    Console(file=file, width=200).print(results_table(folder))
    return file.getvalue()


def test_the_numbers_are_those_of_the_file(tmp_path):
    write_study(tmp_path, {"softmax": {"mean": 0.95}}, steps=40)
    found = outcomes(tmp_path)
    heads, ((headline, loss, *costs, diverged),) = table_of(found)
    assert heads[:3] == ["exact match", "loss", "parameters"]
    assert heads[3:] == ["training FLOPs", "decoding state", "peak memory", "a step", "training", "diverged lanes"]
    result = RunFolder(tmp_path / "softmax").read("result") or {}
    estimate = result["metrics"]["exact_match"]
    assert headline.text == f"{100 * estimate['mean']:.1f}%"
    assert headline.note == f"{100 * estimate['low']:.1f}–{100 * estimate['high']:.1f}%"
    assert repr(estimate["mean"]) in headline.exact
    assert all(repr(value) in headline.exact for value in estimate["values"])
    assert loss.text == f"{result['metrics']['loss']['mean']:.3g}"
    exact = [cell.exact for cell in costs]
    assert exact == ["312456", "64800000000.0", "24576.0", "48500000.0", "0.0953", "143.2"]
    notes = [cell.note for cell in costs]
    assert notes == ["", "1.62 GFLOP a step", "", "1.43 GB process", "40 steps", "21.4 s compiling"]
    assert diverged.text == "0 of 3"


def test_the_terminal_says_the_same(tmp_path):
    write_study(tmp_path, {"softmax": {}, "linear": {"died": (0,)}, "delta": {"finished": False}}, steps=40)
    text = printed(tmp_path)
    found = outcomes(tmp_path)
    for outcome, cells in zip(found, table_of(found)[1], strict=True):
        assert outcome.name in text
        for cell in cells:
            assert cell.text.split(",")[0] in text
    assert "1 of 3" in text


def test_older_folders_lack_the_compiler_s_memory(tmp_path):
    write_study(tmp_path, {"linear": {}, "softmax": {}}, steps=40)
    for name, has in (("softmax", True), ("linear", False)):
        run = RunFolder(tmp_path / name)
        run.write("result", {key: x for key, x in (run.read("result") or {}).items() if key != "memory_bytes"})
        found = outcomes(tmp_path)
        heads, rows = table_of(found)
        # What nobody has gets no column.
        assert ("peak memory" in heads) == has
        if has:
            cells = {one.name: row[heads.index("peak memory")] for one, row in zip(found, rows, strict=True)}
            assert cells["softmax"].text == "–"
            assert float(cells["linear"].exact) > 0


def test_verdicts_stand_beside_the_headline_where_there_are_any(tmp_path):
    write_study(tmp_path, {"softmax": {"mean": 0.99}, "linear": {"mean": 0.5}, "delta": {"finished": False}}, steps=40)
    heads, rows = table_of(outcomes(tmp_path))
    assert heads[1] == "verdict"
    assert [row[1].text for row in rows] == ["reference", "worse", "–"]
    write_study(tmp_path / "one", {"softmax": {}, "linear": {}}, seeds=(1,), steps=40)
    assert "verdict" not in table_of(outcomes(tmp_path / "one"))[0]


def test_many_variants_fit_eighty_columns_by_their_headline(tmp_path):
    names = ["softmax", "linear", "delta", "gated-linear", "retention"]
    write_study(tmp_path, {name: {} for name in names}, steps=40)
    file = io.StringIO()
    Console(file=file, width=80).print(results_table(tmp_path))
    for outcome, cells in zip(outcomes(tmp_path), table_of(outcomes(tmp_path))[1], strict=True):
        (line,) = [line for line in file.getvalue().splitlines() if line.split()[:1] == [outcome.name]]
        assert f"{cells[0].text} ({cells[0].note})" in line


@pytest.mark.parametrize("name", ["[red]x[/red]", "[/]", "日本", ":smile:"])
def test_names_are_printed_as_they_are(tmp_path, name):
    write_run(tmp_path / name.replace("/", ""), "x", steps=40)
    assert name.replace("/", "") in printed(tmp_path)


def test_nothing_to_show(tmp_path):
    with pytest.raises(FolderError):
        results_table(tmp_path)


def test_a_band_says_whether_the_mean_came_out_where_it_was_to(tmp_path):
    means = {"softmax": 0.95, "linear": 0.9, "window": 0.8, "delta": 0.7}
    variants = {name: {"mean": mean} for name, mean in means.items()}
    assert "band" not in table_of(outcomes(write_study(tmp_path / "none", variants, steps=40)))[0]
    variants["softmax"]["band"], variants["linear"]["band"] = (0.94, None), (0.8, 0.85)
    variants["window"]["band"] = (None, "much")
    heads, rows = table_of(outcomes(write_study(tmp_path / "some", variants, steps=40)))
    cells = [row[heads.index("band")] for row in rows]
    assert [(cell.text, cell.note) for cell in cells] == [
        ("≥ 94.0%", "held"),
        ("80.0% to 85.0%", "missed"),
        ("–", ""),
        ("–", ""),
    ]


def test_what_was_published_stands_beside_the_headline_where_there_is_any(tmp_path):
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
