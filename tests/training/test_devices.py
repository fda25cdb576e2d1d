"""Checks that lanes and batches over several devices give the same losses as on one device, up to rounding."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from attnlab.training.devices import devices

MANY = """
import sys
from dataclasses import replace
import jax, numpy as np
from attnlab.training.trainer import Trainer
from tests.small import MODEL, TASK, TRAIN
from tests.training.toy import Bigram

problem, model = TASK.load(), {"toy": Bigram(), "transformer": MODEL}[sys.argv[1]]
for seeds in (8, 1, 6):
    train = replace(TRAIN, seeds=seeds, batch_size=8)
    found = []
    for given in (None, jax.devices()[:1]):
        trainer = Trainer(lambda key: model.create(key, problem.shape), problem, train, devices=given)
        batches, _ = trainer.batches(0, 1)
        state, first = trainer.advance(trainer.start(), batches, 1)
        # The returned state, with its sharding, is the input of the next dispatch.
        state, second = trainer.advance(state, batches, 1)
        scores = trainer.evaluate(state.model, "valid", 4) if seeds == 8 else []
        found.append((first["loss"], second["loss"], [score["exact_match"] for score in scores]))
        print(trainer.sharding, len(state.rate.sharding.device_set))
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=2e-6)
"""


@pytest.mark.parametrize("model", ["toy", pytest.param("transformer", marks=pytest.mark.slow)])
def test_eight_devices_equal_one_device(model):
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=8"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    here = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", MANY, model], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        "on 8 devices: lanes over 8, each batch over 1 8", "None 1",
        "on 8 devices: lanes over 1, each batch over 8 8", "None 1",
        "on 8 devices: lanes over 2, each batch over 4 8", "None 1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lanes", "examples", "count", "shape"),
    [(8, 32, 8, (8, 1)), (6, 32, 8, (2, 4)), (6, 32, 4, (2, 2)), (3, 9, 6, (3, 1)), (5, 32, 3, None)],
)
def test_devices_divide_lanes_and_examples_evenly(lanes, examples, count, shape):
    found = devices(lanes, examples, jax.devices() * count)
    assert (None if found is None else found.mesh.devices.shape) == shape
