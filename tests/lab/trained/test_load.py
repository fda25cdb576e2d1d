"""Tests which checkpoint of a run is loaded, and that a skipped checkpoint is reported."""

import hashlib
import json
import re
import shutil

import pytest

from attnlab.lab.planning.plan import plans
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import Study, change
from attnlab.lab.trained.load import trained
from attnlab.training import manifest
from attnlab.training.checkpoints import CheckpointError
from tests.lab import unfinished
from tests.small import EXPERIMENT


def test_skipped_checkpoint_is_reported(tmp_path, capsys):
    run = unfinished.run(tmp_path / "base", EXPERIMENT)
    assert trained(run, data=False).step == 12
    assert capsys.readouterr() == ("", "")
    (run / "checkpoints" / "12" / "manifest.json").write_text("{}")
    assert trained(run, data=False).step == 6
    out, said = capsys.readouterr()
    assert not out
    assert said.startswith("attnlab: skipped: checkpoint ")
    assert said.endswith("; using the checkpoint of step 6\n")
    assert "/12/manifest.json" in said
    assert said.count("\n") == 1


def test_an_older_run_without_source_marks_is_evaluated_as_trained(tmp_path):
    """Checks a run made before the field existed, whose files do not name it and whose sources had no marks."""
    experiment = change(EXPERIMENT, **{"task.source_marks": "none"})
    problem = experiment.task.load()
    run = unfinished.run(tmp_path / "base", experiment, problem=problem)
    assert "source_marks" not in (RunFolder(run).read("vocabulary") or {})
    written = RunFolder(run).read("experiment") or {}
    assert written["experiment"]["task"]["fields"].pop("source_marks") == "none"
    # The files are written anew, because their checksums depend on the experiment.
    for name, content in (("experiment", written), ("vocabulary", problem.vocabulary)):
        (run / f"{name}.json").unlink()
        RunFolder(run).write(name, content)
    # The identity of the checkpoints is the sha256 of the older text of the configuration.
    text = re.sub(r"(\d)\.0\b", r"\1", json.dumps(written["experiment"], sort_keys=True, separators=(",", ":")))
    for step in ("6", "12"):
        held = manifest.read(run / "checkpoints" / step)
        identity = {"configuration": hashlib.sha256(text.encode()).hexdigest()}
        manifest.write(run / "checkpoints" / step, held | {"identity": identity})
    for data in (False, True):
        found = trained(run, data=data)
        assert (found.step, found.problem.source_marks) == (12, "none")
        assert found.problem.encode_prompt("1 2 3")["source"].tolist() == [[4, 5, 6, 0, 0, 0, 0, 0]]
    study = Study(EXPERIMENT, name="old")
    with pytest.raises(ValueError, match=r"another configuration \(task\.source_marks was 'none', now 'end'\); "):
        plans(study, study.variants(), tmp_path, {})
    same = Study(experiment, name="old")
    (plan,) = plans(same, same.variants(), tmp_path, {})
    assert not plan.clear


def test_best_is_refused_with_several_learning_rates(tmp_path):
    run = unfinished.run(tmp_path / "base", change(EXPERIMENT, **{"train.learning_rate": (0.001, 0.003)}))
    with pytest.raises(CheckpointError, match=r"base was trained at 2 learning rates, .* the steps 6, 12$"):
        trained(run, "best", data=False)
    assert trained(run, 6, data=False).step == 6


def test_a_finished_run_without_its_last_checkpoint_says_so(tmp_path, capsys):
    run = unfinished.run(tmp_path / "base", EXPERIMENT)
    facts = {"metrics": {}, "seeds": [0], "metric": "exact_match", "higher": True, "diverged": []}
    RunFolder(run).write("result", facts | {"steps": 12, "learning_rate": EXPERIMENT.train.rates[0]})
    shutil.rmtree(run / "checkpoints" / "12")
    assert trained(run, data=False).step == 6
    line = "the checkpoint of step 12, which was tested, is missing; using the checkpoint of step 6"
    assert capsys.readouterr().err == f"attnlab: {run}: {line}\n"
    assert trained(run, 6, data=False).step == 6
    assert not capsys.readouterr().err
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(CheckpointError, match="base is finished but has no checkpoints left; its result is kept"):
        trained(run, data=False)
