"""Tests of what the ledger counts."""

from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.study.study import Experiment, change
from attnlab.models.bert import Bert
from attnlab.tasks.text.sentences import Questions
from attnlab.training.config import Train
from tests.lab.planning.formula import BASE


def test_equal_models_are_counted_once():
    ledger = Ledger()
    a = change(BASE, **{"train": Train(learning_rate=1.0, batch_size=4)})
    assert ledger.model(a) is ledger.model(BASE)


def test_pretraining_steps_count_by_their_fraction():
    flops = {}
    for masked in (0, 4, 6):
        task = Questions(train_examples=60, valid_examples=6, test_examples=7, masked=masked, buckets=1)
        base = Experiment(task, Bert(width=8, heads=2, layers=1, feedforward=8), Train(steps=8, warmup=1, batch_size=4))
        flops[masked] = Ledger().flops(base)
    # Half and three quarters of the steps fill in masked words, so their additional cost has the ratio 1.5.
    assert abs((flops[6] - flops[0]) / (flops[4] - flops[0]) - 1.5) < 1e-3
