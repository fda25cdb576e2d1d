"""Tests of studies of tasks without target sequences, from the plan to the page."""

import pytest

from attnlab.lab import load, run
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import Experiment, Study
from attnlab.lab.trained.sample import sample
from attnlab.mechanisms import Linear
from attnlab.models import AssociativeMemory, Language
from attnlab.models.seq2seq import Seq2Seq
from attnlab.tasks import Associations, Recall
from attnlab.training.config import Train
from tests.small import TASK

TRAIN = Train(steps=12, batch_size=4, warmup=2, seeds=2, evaluate_every=4, save_every=12)
STUDIES = {
    # Every loss is below this target, so the run ends at its first evaluation.
    "associations": (
        Experiment(
            Associations(keys=4, examined=3),
            AssociativeMemory(width=4, mechanism=Linear()),
            Train(**{**vars(TRAIN), "target": 1e6}),
        ),
        "loss", 4, "0:1 2:3 0?", 4 * 4 * 5,
    ),
    "recall": (
        Experiment(
            Recall(vocabulary=6, pairs=2, valid_examples=4, test_examples=6),
            Language(width=4, heads=1, layers=1, mechanism=Linear()),
            TRAIN,
        ),
        "accuracy", 12, "k1 v0 k1", 4 * 4 * 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_this_task_runs_and_can_be_sampled(name, tmp_path):
    experiment, metric, steps, question, state = STUDIES[name]
    results = run(Study(experiment, name=name, published={"base": 0.25}), tmp_path)
    folder = RunFolder(tmp_path / name / "base")
    found = folder.read("result") or {}
    assert found["metric"] == metric
    assert found["steps"] == steps
    assert len(found["stopped"]) == (2 if steps < 12 else 0)
    # The size includes the position state, which takes less than 32 bytes.
    assert state <= found["state_bytes"] < state + 32
    # A task without sequences has no map.
    assert (folder.read("maps") or {}).get("kind") == (None if name == "associations" else "decoder")
    assert "published" in results.report.read_text()
    model, problem = load(folder.path)
    assert sample(folder.path, question)["answer"] == problem.format_answer(
        problem.answer(model, problem.encode_prompt(question))
    )


def test_a_model_without_attention_has_no_map(tmp_path):
    experiment = Experiment(TASK, Seq2Seq(width=4), TRAIN)
    results = run(Study(experiment, name="forgetful"), tmp_path)
    assert results.code == 0
    assert RunFolder(tmp_path / "forgetful" / "base").read("maps") is None
    assert sample(tmp_path / "forgetful" / "base", "1 2 3")["map"] is None
