"""Tests of the warning on lanes that stopped before their primary metric changed."""

import pytest

from attnlab.lab.results.declared import entries
from attnlab.lab.results.stalled import stalled
from tests.lab.metrics import declared

LINE = (
    "seed 0 at learning rate 0.1 was stopped at step 30 by train.patience=2, but its exact match on validation was "
    "0.0% at every evaluation; raise train.patience if the loss was still falling"
)


def rows(*values, seed=0):
    return [
        {"step": 10 * n, "seed": seed, "learning_rate": 0.1, "loss": 1.0, "valid.exact_match": value}
        for n, value in enumerate(values, 1)
    ]


@pytest.mark.parametrize(
    ("values", "patience", "lines"),
    [
        ((0.0, 0.0, 0.0), 2, [LINE]),
        ((0.1, 0.0, 0.0), 2, []),
        ((0.0, 0.0, 0.0, 0.5), 2, [LINE]),
        ((0.0,) * 3, 0, []),
        ((1.0,), 2, []),
    ],
)
def test_a_lane_whose_metric_never_changed_is_named(values, patience, lines):
    stopped = [{"seed": 0, "learning_rate": 0.1, "step": 30}]
    result = {"metric": "exact_match", "declared": entries([declared("exact_match")]), "stopped": stopped}
    others = [{"step": 5, "seed": 0, "learning_rate": 0.1, "loss": 2.0}, *rows(0.3, 0.4, 0.5, seed=1)]
    assert stalled(result, [*rows(*values), *others], patience) == lines
    assert stalled(result | {"stopped": []}, rows(*values), patience) == []
