"""A failure to write maps, pictures, answers or the page does not affect the result."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import attnlab
from attnlab.lab import load, run
from attnlab.lab.execution import artifacts
from attnlab.lab.execution.artifacts import TRIES
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import over
from attnlab.models import Language
from attnlab.tasks import Recall
from tests.gated import Gated
from tests.lab.noted import Noted
from tests.small import EXPERIMENT, TINY


@pytest.fixture
def gated(monkeypatch):
    """Returns a study of a mechanism whose extras are as wide as the values."""
    monkeypatch.setitem(attnlab.MECHANISMS, "gated", Gated())
    model = replace(EXPERIMENT.model, mechanism=Gated())
    return Study(replace(EXPERIMENT, model=model), name="gated")


def test_a_mechanism_with_extras_as_wide_as_the_values_trains_and_has_maps(tmp_path, gated):
    progress = Noted()
    results = run(gated, tmp_path, progress=progress)
    folder = RunFolder(tmp_path / "gated" / "base")
    assert (results.code, [line for line in progress.notes if "not saved" in line]) == (0, [])
    assert not folder.artifacts_pending.exists()
    examples = folder.read("maps")["examples"]
    for example in examples:
        layers = np.array(example["layers"])
        assert layers.shape == (1, 2, len(example["target"]), len(example["source"]))
        assert np.abs(layers).max() > 0
    load(folder.path)


STUDY = Study(change(EXPERIMENT, **TINY | {"train.steps": 8}), name="small")
RECALL = Recall(vocabulary=6, pairs=2, valid_examples=4, test_examples=6)


def broken(error, *arguments):
    raise error


def same(folder, other):
    """Returns whether two runs have the same result, apart from times and memory."""
    of = [RunFolder(one / "small" / "base") for one in (folder, other)]
    noise = ("seconds", "compile_seconds", "seconds_per_step", "peak_memory", "memory_bytes")
    results = [{name: value for name, value in one.read("result").items() if name not in noise} for one in of]
    return results[0] == results[1] and of[0].read("maps") == of[1].read("maps")


@pytest.mark.parametrize("what", ["snapshots", "answer_pictures", "write_answers"])
def test_a_failure_to_draw_is_noted_and_the_result_is_complete(tmp_path, monkeypatch, what):
    monkeypatch.setattr(artifacts, what, partial(broken, RuntimeError("no such font")))
    progress = Noted()
    assert run(STUDY, tmp_path, progress=progress).code == 0
    folder = RunFolder(tmp_path / "small" / "base")
    assert folder.read("result")["metrics"]
    assert not folder.artifacts_pending.exists()
    (note,) = [line for line in progress.notes if "no such font" in line]
    assert note.startswith("base: the ")
    assert note.endswith("; the result is complete")
    # A second run has nothing left to do.
    progress.notes.clear()
    assert run(STUDY, tmp_path, progress=progress).code == 0
    assert progress.notes[-1] == f"base: already finished, in {folder.path}"


def test_a_run_stopped_while_drawing_keeps_its_result_and_draws_when_resumed(tmp_path, monkeypatch):
    study = Study(change(EXPERIMENT, task=RECALL, model=Language(width=4, heads=1, layers=1)), name="small")
    run(study, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(artifacts, "snapshots", partial(broken, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            run(study, tmp_path / "cut")
        folder = RunFolder(tmp_path / "cut" / "small" / "base")
        assert folder.read("result") is not None
        assert folder.read("maps") is None
        assert not folder.file("answers").exists()
    run(study, tmp_path / "cut")
    assert same(tmp_path / "whole", tmp_path / "cut")
    answers = [(tmp_path / out / "small" / "base" / "answers.tsv").read_bytes() for out in ("whole", "cut")]
    assert answers[0] == answers[1]
    assert not folder.artifacts_pending.exists()


def test_drawing_is_skipped_after_it_ended_the_process_several_times(tmp_path, monkeypatch):
    monkeypatch.setattr(artifacts, "snapshots", partial(broken, KeyboardInterrupt()))
    for _ in range(TRIES):
        with pytest.raises(KeyboardInterrupt):
            run(STUDY, tmp_path)
    progress = Noted()
    results = run(STUDY, tmp_path, progress=progress)
    assert results.code == 0
    assert progress.notes[-1] == f"base: the process ended {TRIES} times while drawing the maps, so they are skipped"


def test_missing_artifacts_without_a_checkpoint_do_not_train_again(tmp_path, monkeypatch):
    run(STUDY, tmp_path)
    folder = RunFolder(tmp_path / "small" / "base")
    before = {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}
    for path in (folder.path / "checkpoints").iterdir():
        path.rename(folder.path / f"moved-{path.name}")
    artifacts.begin(folder)
    progress = Noted()
    assert run(STUDY, tmp_path, progress=progress).code == 0
    assert "has no checkpoint of step 8" in progress.notes[-1]
    assert {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()} == before


def test_costs_that_cannot_be_counted_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("attnlab.lab.execution.ahead.costs", partial(broken, TypeError("no start")))
    progress = Noted()
    assert run(STUDY, tmp_path, progress=progress).code == 0
    assert RunFolder(tmp_path / "small" / "base").read("result")["flops"] is None
    assert [line for line in progress.notes if "the costs cannot be computed" in line]


def test_results_are_kept_if_the_page_cannot_be_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("attnlab.lab.launch.report", partial(broken, RuntimeError("no such font")))
    progress = Noted()
    results = run(STUDY, tmp_path, progress=progress)
    assert (results.report, results.code) == (None, 4)
    assert progress.notes[-1].startswith("the page could not be written (unexpected RuntimeError: no such font")
    assert json.loads((tmp_path / "small" / "base" / "result.json").read_text())
    # If a study fails, its own error is raised, and not the later error of its page.
    monkeypatch.setattr("attnlab.lab.execution.variant.fit", partial(broken, ValueError("the true reason")))
    both = replace(STUDY, vary=over("train.seeds", few=1, many=2))
    with pytest.raises(ValueError, match="the true reason"):
        run(both, tmp_path)


def test_the_page_is_written_if_pictures_cannot_be_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("attnlab.lab.reporting.png.answer", partial(broken, RuntimeError("no such font")))
    results = run(STUDY, tmp_path)
    assert results.code == 0
    assert results.report.is_file()
    assert "answer.png could not be drawn" in capsys.readouterr().err
