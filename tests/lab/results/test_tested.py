"""Tests of the line that reports if other models than the last ones were tested."""

import pytest

from attnlab.lab.results.declared import entries
from attnlab.lab.results.tested import model_line
from tests.lab.metrics import declared

MEANS = {
    "metric": "exact_match",
    "declared": entries([declared("exact_match")]),
    "metrics": {"exact_match": {"mean": 0.716}},
    "last_metrics": {"exact_match": {"mean": 0.769}},
}


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ({"metric": "exact_match", "metrics": MEANS["metrics"]}, ""),
        (MEANS | {"tested_model": "last"}, ""),
        (MEANS | {"tested_model": "mean", "metrics": {"exact_match": {"mean": None}}}, ""),
        (MEANS | {"tested_model": "mean", "last_metrics": []}, ""),
        (
            MEANS | {"tested_model": "mean", "tested_steps": [720, 760, 800]},
            "the mean of 3 models (steps 720 to 800) was tested: exact match 71.6%; the last model has 76.9%",
        ),
        (
            MEANS | {"tested_model": "best", "tested_steps": [1200, 800]},
            "the best model on validation (step 1,200, 800) was tested: exact match 71.6%; the last model has 76.9%",
        ),
    ],
)
def test_tested_and_last_model_are_reported(result, line):
    assert model_line(result) == line
