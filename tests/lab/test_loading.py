"""Which checkpoint a run is read back from, and that it is said where it is not the one asked for."""

import shutil

import pytest

from attnlab.lab.folder import RunFolder
from attnlab.lab.loading import trained
from attnlab.lab.study import change
from attnlab.training.checkpoints import CheckpointError
from tests.lab import unfinished
from tests.small import EXPERIMENT


def test_a_checkpoint_that_is_passed_over_is_told_with_the_one_that_is_taken(tmp_path, capsys):
    run = unfinished.run(tmp_path / "base", EXPERIMENT)
    assert trained(run, data=False).step == 12
    assert capsys.readouterr() == ("", "")
    (run / "checkpoints" / "12" / "manifest.json").write_text("{}")
    assert trained(run, data=False).step == 6
    out, said = capsys.readouterr()
    assert not out
    assert said.startswith("attnlab: passed over: checkpoint ")
    assert said.endswith("; the checkpoint of step 6 is taken\n")
    assert "/12/manifest.json" in said
    assert said.count("\n") == 1


def test_of_several_learning_rates_no_checkpoint_is_the_best(tmp_path):
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
    line = "the checkpoint of step 12, which was tested, is gone; the checkpoint of step 6 is taken"
    assert capsys.readouterr().err == f"attnlab: {run}: {line}\n"
    assert trained(run, 6, data=False).step == 6
    assert not capsys.readouterr().err
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(CheckpointError, match="base is finished, and its checkpoints are gone: attnlab run --fresh"):
        trained(run, data=False)
