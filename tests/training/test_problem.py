"""Tests of what a task's scores must be."""

import math

import pytest

from attnlab.tasks.synthetic.reverse import Reverse
from attnlab.training.problem import check_scores

PROBLEM = Reverse(symbols=5, train_longest=6, longest=6, train_examples=8, valid_examples=2, test_examples=2).load()


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ({"bleu": 0.5}, "score must return the primary metric 'exact_match', got bleu"),
        ({"exact_match": 50.0}, r"score returns exact_match=50, but the metric is declared in 0 … 1; a metric with"),
        ({"exact_match": 0.5, "exact_match.short": -0.1}, r"score returns exact_match\.short=-0\.1, but"),
    ],
)
def test_scores_are_those_that_the_task_declares(scores, words):
    assert PROBLEM.metric.name == "exact_match"
    with pytest.raises(ValueError, match=f"^{words}"):
        check_scores(PROBLEM, scores)


def test_rounding_losses_and_nan_pass():
    check_scores(PROBLEM, {"exact_match": 1 + 1e-9, "loss": 70.0, "exact_match.short": math.nan})
