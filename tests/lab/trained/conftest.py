"""Trained runs of every kind of task that reads files."""

import pytest

from attnlab.lab import run
from attnlab.lab.study.study import Experiment, Study
from attnlab.training.config import Train
from tests.lab.trained.own_data import KINDS


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Returns a function for the run of a kind of task and its test file. Each run is trained once for all tests."""
    made = {}

    def of(kind):
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            task, model, file = KINDS[kind](folder)
            train = Train(steps=8, batch_size=4, warmup=2, seeds=2, evaluate_every=8, save_every=8)
            rates = {"learning_rate": (1e-4, 3e-3)} if kind in ("pairs", "sentences") else {}
            study = Study(Experiment(task, model, Train(**vars(train) | rates)), name=kind)
            run(study, folder / "runs")
            made[kind] = folder / "runs" / kind / "base", file
        return made[kind]

    return of
