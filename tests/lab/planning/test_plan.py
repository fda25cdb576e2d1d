from pathlib import Path

import pytest

from attnlab.lab.execution.variant import clear
from attnlab.lab.planning import plan
from attnlab.lab.planning.plan import plans, steps_after
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import Variation
from attnlab.models import Bert
from attnlab.storage.json_file import FolderError
from attnlab.tasks.text.sentences import Questions
from tests.small import EXPERIMENT, TINY

BASE = change(EXPERIMENT, **TINY)
STUDY = Study(BASE, Variation({"a": {}, "b": {"train.steps": 16}, "c": {"train.steps": 9}}), name="planned")


def test_unfinished_variants_are_planned(tmp_path):
    first, second, third = found = plans(STUDY, STUDY.variants(), tmp_path, {})
    assert [steps_after(found, each) for each in found] == [16 + 9, 9, 0]
    # If two processes share the study, half of the remaining steps counts: 25 // 2.
    assert steps_after(found, first, workers=2) == 12
    second.folder.path.mkdir()
    second.folder.file("result").write_text("{}")
    assert [steps_after(found, each) for each in (first, third)] == [9, 0]


def test_models_of_pretraining_steps_are_not_averaged(tmp_path):
    task = Questions(masked=8, train_examples=30, valid_examples=6, test_examples=6, buckets=1)
    fields = {"train.steps": 20, "train.save_every": 4, "train.evaluate_every": 4, "train.average_span": 1.0}
    base = change(EXPERIMENT, task=task, model=Bert(width=8, heads=2, layers=1, feedforward=8), **fields)
    # Models are saved at steps 4, 8, 12, 16 and 20.
    for average, allowed in ((0, True), (3, True), (4, False), (5, False)):
        study = Study(change(base, **{"train.average": average}), name="averaged")
        if allowed:
            assert plans(study, study.variants(), tmp_path, {})
            continue
        with pytest.raises(
            ValueError, match=rf"train\.average={average} averages from step {4 * (6 - average)}, but the first 8"
        ):
            plans(study, study.variants(), tmp_path, {})


def test_leftovers_of_a_started_run_are_refused_without_fresh(tmp_path):
    assert not plans(STUDY, STUDY.variants(), tmp_path, {})[0].clear
    home = tmp_path / "a"
    home.mkdir()
    for name in ("lock", "notes.txt"):
        (home / name).write_text("")
    assert not any(plan.clear for plan in plans(STUDY, STUDY.variants(), tmp_path, {}, fresh=True))
    (home / "result.json").write_text("{}")
    with pytest.raises(
        FolderError,
        match=r"experiment\.json is missing, but .*restore it, or train the run again in another folder: attnlab run",
    ):
        plans(STUDY, STUDY.variants(), tmp_path, {})
    assert [plan.clear for plan in plans(STUDY, STUDY.variants(), tmp_path, {}, fresh=True)] == [True, False, False]


def test_the_file_that_identifies_a_folder_is_deleted_last(tmp_path, monkeypatch):
    for name in ("lock", "experiment.json", "result.json", "vocabulary.json", "a.json", "z.json"):
        (tmp_path / name).write_text("")
    gone = []
    unlink = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda path: (gone.append(path.name), unlink(path)))
    clear(tmp_path)
    assert gone[-1] == "experiment.json"
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


@pytest.mark.parametrize("count", [8, 9])
def test_all_differing_fields_are_named_without_advice_to_delete(tmp_path, count):
    """Checks that up to eight differing fields are named.

    A run that was made before eight fields existed needs all of them on the command line to continue.
    """
    fields = {"beta1": 0.8, "beta2": 0.9, "clip": 2.0, "warmup": 1, "weight_decay": 0.1, "final_rate": 0.5}
    fields |= {"keep_last": 3, "keep_best": 2, "keep_every": 8}
    changes = {f"train.{name}": value for name, value in list(fields.items())[:count]}
    before = {"variant": "base", "experiment": serialize.write(BASE)}
    written = serialize.write(change(BASE, **changes))
    with pytest.raises(ValueError, match=r"another configuration") as error:
        plan._same(RunFolder(tmp_path), "base", before, written, quick=False)
    line = str(error.value)
    assert sum(f"{path} was " in line for path in changes) == 8
    assert ("1 more" in line) == (count == 9)
    assert line.endswith("; restore these values to continue that run, or set another --out DIR to keep both")
    assert "fresh" not in line
