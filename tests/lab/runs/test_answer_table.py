"""Tests that the table of answers preserves the text of its cells and stays within its size limit."""

import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.lab import run
from attnlab.lab.runs.answer_table import escape, read, unescape, write_answers
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import Study, change
from attnlab.models.mlp import MLP
from attnlab.tasks import Figures
from attnlab.tasks.base.task import Row
from tests.small import EXPERIMENT

TRICKY = "a\tb\\n\\\r\n\"'c'\u2028\x0b\x85\\"


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_any_text_is_kept_in_one_cell(text):
    assert unescape(escape(text)) == text
    assert not {"\t", "\n", "\r"} & set(escape(text))


def test_a_table_round_trips_also_through_the_csv_module(tmp_path):
    path = tmp_path / "answers.tsv"
    rows = {
        3: [Row(TRICKY, None, "b", 0.5), Row("", "x", "", 1 / 3)],
        7: [Row(TRICKY, None, "c"), Row("", "x", TRICKY)],
    }
    assert write_answers(path, rows, "nats") is None
    assert read(path) == [
        {"input": TRICKY, "expected": "", "answer.3": "b", "nats.3": "0.5", "answer.7": "c"},
        {"input": "", "expected": "x", "answer.3": "", "nats.3": "0.333333", "answer.7": TRICKY},
    ]
    with path.open(encoding="utf-8", newline="\n") as file:
        cells = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n"))
    assert len(cells) == 3
    assert unescape(cells[2][4]) == TRICKY


def test_an_empty_column_is_left_out(tmp_path):
    write_answers(tmp_path / "answers.tsv", {0: [Row("text", None, None, 2.0)]}, "nats")
    assert (tmp_path / "answers.tsv").read_bytes() == b"input\tnats.0\ntext\t2\n"


def test_a_long_table_is_truncated_at_its_limit_with_a_note(tmp_path):
    path = tmp_path / "answers.tsv"
    said = write_answers(path, {0: [Row("x" * 98, "y", "z")] * 1000}, "", most=5_000)
    assert said == "answers.tsv contains only the first 48 of 1,000 test examples"
    assert len(read(path)) == 48
    assert path.stat().st_size <= 5_000


def test_without_examples_nothing_is_written(tmp_path):
    assert write_answers(tmp_path / "answers.tsv", {0: []}, "nats") is None
    assert write_answers(tmp_path / "answers.tsv", {}, "nats") is None
    assert not list(tmp_path.iterdir())


FIGURES = {
    "task": Figures(train_examples=200, valid_examples=40, test_examples=60, size=12),
    "model": MLP(width=16),
    "train.steps": 48,
    "train.batch_size": 16,
    "train.learning_rate": 0.01,
}


@pytest.mark.parametrize("rates", [0.01, (1e-7, 0.01)])
def test_a_run_stores_test_answers_of_every_seed_at_the_selected_rate(tmp_path, rates):
    page = run(Study(change(EXPERIMENT, **FIGURES | {"train.learning_rate": rates}), name="kept"), tmp_path).report
    assert '<a href="base/answers.tsv">' in page.read_text()
    folder = RunFolder(tmp_path / "kept" / "base")
    rows, result = read(folder.file("answers")), folder.read("result") or {}
    assert list(rows[0]) == ["input", "expected", "answer.0", "probability.0", "answer.1", "probability.1"]
    assert len(rows) == 60
    assert rows[11]["input"] == "test:12"
    assert result["learning_rate"] == 0.01
    for n, value in enumerate(result["metrics"]["accuracy"]["values"]):
        assert sum(row["expected"] == row[f"answer.{n}"] for row in rows) / 60 == value > 0.15


def test_unwritable_answers_do_not_lose_the_result(tmp_path, monkeypatch):
    from tests.lab.execution.test_variant import Stopping

    def refuse(*_):
        raise RuntimeError("no such text")

    study = Study(change(EXPERIMENT, **FIGURES | {"train.steps": 12}), name="kept")
    monkeypatch.setattr(type(study.base.task.load()), "rows", refuse)
    progress = Stopping()
    assert run(study, tmp_path, progress=progress).code == 0
    assert RunFolder(tmp_path / "kept" / "base").read("result") is not None
    assert [line for line in progress.notes if "the test answers were not saved" in line and "no such text" in line]
