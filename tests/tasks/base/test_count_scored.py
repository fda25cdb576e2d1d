"""Checks the number of questions of which a primary metric is the share of right answers. Padding does not count."""

import numpy as np
import pytest

from attnlab.tasks.synthetic.associations import Associations
from attnlab.tasks.synthetic.listops import ListOps
from attnlab.tasks.synthetic.recall import Recall
from attnlab.tasks.synthetic.reverse import Reverse
from attnlab.tasks.vision.images import Figures

TASKS = {
    "figures": (Figures(train_examples=40, valid_examples=10, test_examples=300, size=12), 300),
    "listops": (ListOps(shortest=4, longest=12, valid_examples=10, test_examples=300), 300),
    "recall": (Recall(vocabulary=16, pairs=3, queries=3, length=16, valid_examples=4, test_examples=300), 900),
    "reverse": (Reverse(train_examples=40, valid_examples=10, test_examples=300), 300),
}


@pytest.mark.parametrize("name", TASKS)
def test_padding_is_not_counted(name):
    task, count = TASKS[name]
    problem = task.load()
    rows = sum(len(next(iter(batch.values()))) for batch in problem.eval_batches("test"))
    assert rows > 300
    assert problem.count_scored("test") == count
    assert problem.count_scored("test", 20) == 20 * count // 300


def test_counted_is_the_denominator_of_the_metric():
    problem = TASKS["figures"][0].load()
    batches = problem.eval_batches("test")
    answers = [{"label": np.array(batch["label"])} for batch in batches]
    answers[0]["label"][0] += 1
    assert problem.score("test", answers)["accuracy"] == pytest.approx(1 - 1 / problem.count_scored("test"))


def test_bleu_has_no_counts(monkeypatch):
    problem = TASKS["reverse"][0].load()
    monkeypatch.setattr(problem, "metric", "bleu")
    assert problem.count_scored("test") is None


def test_a_loss_has_no_counts():
    assert Associations(keys=4, examined=20).load().count_scored("test") is None
