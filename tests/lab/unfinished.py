"""The folder of a stopped run with checkpoints, without training."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study import serialize
from attnlab.lab.study.user_code import codes, places
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.trainer import Trainer
from tests.lab.parrot import PROBLEM


def run(folder: Path, experiment, seed=0, diverged=(), scale=0.5, problem=PROBLEM) -> Path:
    """Writes a run folder of the experiment with checkpoints at steps 6 and 12, and returns its path.

    The parameters are random, and those of step 6 are half as large. The lanes in `diverged` have diverged.
    """
    made, train = RunFolder(folder), experiment.train
    folder.mkdir(parents=True)
    facts = {"study": "small", "question": "", "variant": folder.name, "quick": False}
    written = serialize.write(experiment)
    facts |= {"fingerprint": problem.fingerprint, "experiment": written, "code": codes(written), "own": places(written)}
    made.write("experiment", facts)
    made.write("vocabulary", problem.vocabulary)
    like = shapes(experiment, problem)
    lost = np.array([5 if n in diverged else -1 for n in range(len(train.lanes))], np.int32)
    for step, size in ((6, scale / 2), (12, scale)):
        rng = np.random.default_rng(seed)
        drawn = lambda tree, rng=rng, size=size: jax.tree.map(
            lambda x: (size * rng.normal(size=x.shape)).astype(x.dtype), tree
        )
        keys = jax.random.split(jax.random.key(0), len(train.lanes))
        state = replace(
            jax.tree.map(zeros, replace(like, key=None)), key=keys, diverged_step=lost, model=drawn(like.model)
        )
        state = replace(state, mean=None if like.mean is None else drawn(like.mean))
        Checkpoints(folder / "checkpoints").save(step, state, {"seconds": 0.0, "compile_seconds": 0.0})
    return folder


def shapes(experiment, problem=PROBLEM):
    """Returns the shapes of the training state of the experiment."""
    create = lambda key: experiment.model.create(key, problem.shape)
    return jax.eval_shape(Trainer(create, problem, experiment.train).start)


def zeros(x):
    return np.zeros(x.shape, x.dtype)
