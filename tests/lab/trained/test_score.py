"""Tests of `score` on other files. For every kind of task, its scores on the test file of a run equal its result."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from attnlab.cli.main import main
from attnlab.cli.score import title
from attnlab.lab.runs.answer_table import read
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.trained.score import score, table
from tests.data.audio.test_recordings import put, tone
from tests.data.images.test_idx_files import idx
from tests.lab.trained.own_data import KINDS, graph


@pytest.mark.parametrize("kind", KINDS)
def test_scoring_the_own_test_file_reproduces_result_and_answers(kind, trained, tmp_path):
    folder, file = trained(kind)
    (found,) = score(folder, [file])
    result = RunFolder(folder).read("result") or {}
    assert found.metrics == result["metrics"]
    assert list(found.seeds) == result["seeds"]
    assert (tmp_path / "t.tsv").write_text(table([found]))
    assert read(tmp_path / "t.tsv") == read(folder / "answers.tsv")
    assert found.examples > 0


@pytest.mark.parametrize("kind", ["pairs", "pronunciations", "sentences", "text", "photographs", "sounds", "boxes"])
def test_examples_of_the_training_part_are_reported(kind, tmp_path):
    task, _, file = KINDS[kind](tmp_path)
    train = str(Path(file).with_name(Path(file).name.replace("test", "train"))) if kind != "photographs" else None
    train = train or str(tmp_path / "train")
    (line,) = [note for note in task.with_test(task.load(), train).notes if "also" in note]
    assert re.fullmatch(rf"{re.escape(train)}: (\d+) of \1 [\w ]+ are also in train", line)


@pytest.mark.parametrize("kind", ["pairs", "sentences", "text"])
def test_the_command_prints_what_the_table_does_and_keeps_the_answers(kind, trained, tmp_path, capsys):
    folder, file = trained(kind)
    out, record = tmp_path / "out.tsv", tmp_path / "out.json"
    assert main(["score", str(folder), file, "--out", str(out), "--json", str(record)]) == 0
    said = capsys.readouterr().out
    result = RunFolder(folder).read("result") or {}
    assert json.loads(record.read_text())[0]["metrics"] == result["metrics"]
    assert f"answers: {out}" in said
    assert result["metric"].replace("_", " ") in said
    assert read(out) == read(folder / "answers.tsv")


@pytest.mark.parametrize(
    ("kind", "content"),
    [("pairs", "abc\nba\n"), ("pronunciations", "abc\nba\n"), ("sentences", "rises x falls\nx x\n")],
)
def test_inputs_without_answers_have_answers_but_no_metrics(kind, content, trained, tmp_path):
    folder, _ = trained(kind)
    (tmp_path / "inputs").write_text(content)
    (found,) = score(folder, [str(tmp_path / "inputs")])
    assert found.metrics == {}
    assert [row.input for row in found.rows[0]] == content.splitlines()
    assert all(row.expected is None and row.answer is not None for row in found.rows[0])
    if kind == "sentences":
        assert any("without classes" in note for note in found.notes)


def test_pictures_are_answered_by_name_in_folders_of_classes_in_a_table_and_alone(trained, tmp_path, capsys):
    from PIL import Image

    folder, _ = trained("images")
    draw = np.random.default_rng(0)
    for name in ("1/a.png", "2/b.png", "c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(draw.integers(256, size=(4, 5), dtype=np.uint8)).save(tmp_path / name)
    (found,) = score(folder, [str(tmp_path)])
    assert {row.input: row.expected for row in found.rows[0]} == {"1/a.png": "1", "2/b.png": "2", "c.png": None}
    assert list(found.metrics) == ["accuracy"]
    assert (found.examples, found.scored) == (3, 2)
    assert title(found).startswith(f"{tmp_path}: 3 examples, 2 of them with an expected answer, ")
    (tmp_path / "table.tsv").write_text("2/b.png\t2\n1/a.png\t0\n")
    listed, alone = score(folder, [str(tmp_path / "table.tsv"), str(tmp_path / "c.png")])
    assert [(row.input, row.expected) for row in listed.rows[0]] == [("2/b.png", "2"), ("1/a.png", "0")]
    assert [row.expected for row in alone.rows[0]] == [None]
    assert alone.metrics == {}
    assert main(["score", str(folder), str(tmp_path / "c.png"), "--out", "-"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "c.png: 1 example, " in line]
    assert line.startswith(f"{tmp_path}/c.png: 1 example, ")
    assert line.endswith("; no metrics, because the file has no expected answers")
    assert title(listed) == f"{tmp_path}/table.tsv: 2 examples, 2 seeds"
    before = {row.input: row for row in found.rows[0]}
    assert [row.answer for row in listed.rows[0]] == [before[name].answer for name in ("2/b.png", "1/a.png")]
    heading, *rows = table([listed, alone]).splitlines()
    assert heading.startswith("file\tinput\texpected\tanswer.0\tprobability.0")
    assert [row.split("\t")[0] for row in rows] == [str(tmp_path / "table.tsv")] * 2 + [str(tmp_path / "c.png")]


def test_a_run_on_pictures_is_scored_on_its_folder_on_a_table_and_on_one_picture(trained, tmp_path):
    folder, file = trained("photographs")
    (own,) = score(folder, [file])
    kept = json.loads((folder / "result.json").read_text())["metrics"]
    assert own.metrics["accuracy"]["values"] == kept["accuracy"]["values"]
    (tmp_path / "some.tsv").write_text(f"{file}/test/wet/1.png\twet\n{file}/test/dry/0.png\twet\n")
    listed, alone = score(folder, [str(tmp_path / "some.tsv"), f"{file}/test/wet/1.png"])
    before = {row.input: row for row in own.rows[0]}
    assert [(row.expected, row.answer) for row in listed.rows[0]] == [
        ("wet", before["wet/1.png"].answer),
        ("wet", before["dry/0.png"].answer),
    ]
    assert {row.answer for row in own.rows[0]} <= {"dry", "wet"}
    assert [row.expected for row in alone.rows[0]] == [None]


def test_images_without_labels_next_to_them_are_answered(trained, tmp_path):
    folder, _ = trained("images")
    pixels = np.zeros((3, 4, 5), np.uint8)
    idx(tmp_path / "new-images", pixels)
    (found,) = score(folder, [str(tmp_path / "new-images")])
    assert found.metrics == {}
    assert [row.input for row in found.rows[0]] == ["test:1", "test:2", "test:3"]


def test_another_graph_of_other_nodes_is_answered_with_the_labels_that_it_has(trained, tmp_path):
    folder, _ = trained("nodes")
    labels = np.array([0, 1, 2, -1] * 5)
    known = graph(tmp_path / "known.npz", 20, labels=labels, seed=1)
    (found,) = score(folder, [known])
    assert found.examples == 20
    assert [row.expected for row in found.rows[0]] == [str(n) if n >= 0 else None for n in labels]
    right = [row.answer == row.expected for row in found.rows[0] if row.expected]
    assert found.metrics["accuracy"]["values"][0] == sum(right) / 15
    bare = dict(np.load(known))
    del bare["labels"]
    np.savez(tmp_path / "bare.npz", **bare)
    (alone,) = score(folder, [str(tmp_path / "bare.npz")])
    assert alone.metrics == {}
    # The labels do not change the answers.
    assert [row.answer for row in alone.rows[0]] == [row.answer for row in found.rows[0]]


def test_recordings_and_images_without_labels_are_answered(trained, tmp_path):
    folder, _ = trained("sounds")
    for take in range(2):
        put(tmp_path / "new" / f"rec_{take}.wav", tone(300, 8000, 0.1), rate=8000)
    (found,) = score(folder, [str(tmp_path / "new")])
    assert found.metrics == {}
    assert [(row.input, row.expected) for row in found.rows[0]] == [("rec_0.wav", None), ("rec_1.wav", None)]
    folder, file = trained("boxes")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes((Path(file) / "0.png").read_bytes())
    (found,) = score(folder, [str(tmp_path / "images")])
    assert found.metrics == {}
    assert [(row.input, row.expected) for row in found.rows[0]] == [("a", None)]


def test_unknown_symbols_are_left_out_and_their_lines_reported(trained, tmp_path):
    (tmp_path / "x.tsv").write_text("ab\tba\nażb\tba\nac\tbż\n")
    (found,) = score(trained("pairs")[0], [str(tmp_path / "x.tsv")])
    assert [note.partition(": ")[2] for note in found.notes[:2]] == [
        "1 of 3 examples has source symbols that do not occur in training; these are left out of the input: line 2",
        "1 of 3 examples has target symbols that do not occur in training; no answer can have them: line 3",
    ]
    # Without its unknown symbol, line 2 equals line 1. An expected answer with an unknown symbol is never correct.
    assert found.rows[0][1].answer == found.rows[0][0].answer
    assert found.rows[0][2].expected == "bż"
