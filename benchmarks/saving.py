"""The cost of checkpoints: the time of saving relative to training, and the time to verify a checkpoint of 500 MB.

Claim: saving takes at most 3% of the training time of experiments/dates.py; verification takes at most 1 s for 500 MB.

Command: python benchmarks/saving.py [--lengths STEPS] [--repeat 3] [--save]     (3.5 minutes on two cores)

The script trains the softmax variant of dates as it is for some steps (500, the number between two of its checkpoints,
so that the share is that of the whole run) and saves its checkpoint at the end. It compares the seconds of that save
(orbax, a sha256 of every file, everything forced to the disk) with those of the steps, without compilation. Then it
saves a checkpoint of 500 MB in eight leaves, and verifies it as a resume does before it reads anything.

Expected: the last lines say which part of the claim holds on this machine. Measured on two cores of an x86-64 cloud
machine while no other program ran: saving 0.35% of the training time (0.18 s to 53 s of steps, the largest of 3
shares), 500 MB verified in 0.31 s.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from attnlab.analysis.measure import quartiles
from attnlab.bench.script import claim, finish, options, say
from attnlab.lab.study.load import load_study
from attnlab.training import manifest
from attnlab.training.checkpoints import Checkpoints, size
from attnlab.training.trainer import Trainer

BYTES = 500 * 10**6


def training(steps: int, repeat: int) -> list[float]:
    """Return the seconds of a save divided by those of the steps between two saves, for each save."""
    experiment = load_study(Path("experiments/dates.py")).variants()["softmax"]
    problem = experiment.task.load()
    trainer = Trainer(lambda key: experiment.model.create(key, problem.shape), problem, experiment.train)
    state, step, shares = trainer.start(), 0, []
    with TemporaryDirectory() as folder:
        checkpoints = Checkpoints(Path(folder))
        checkpoints.save(0, state, {})  # orbax is imported
        for turn in range(1, repeat + 1):
            began, compiled = time.perf_counter(), trainer.compile_seconds
            while step < turn * steps:
                batches, count = trainer.batches(step, turn * steps)
                state, _ = trainer.advance(state, batches, count)
                step += count
            trained = time.perf_counter() - began - (trainer.compile_seconds - compiled)
            began = time.perf_counter()
            checkpoints.save(step, state, {})
            saved = time.perf_counter() - began
            shares.append(saved / trained)
            say(f"{steps} steps {trained:.1f} s, their checkpoint of {size(state) / 1e6:.1f} MB {saved:.2f} s")
    return shares


def verifying(repeat: int) -> list[float]:
    """Return the seconds to verify a checkpoint of 500 MB."""
    state = {str(n): np.random.default_rng(n).random(BYTES // 64) for n in range(8)}
    with TemporaryDirectory() as folder:
        checkpoints, seconds = Checkpoints(Path(folder)), []
        checkpoints.save(1, state, {})
        for _ in range(repeat):
            began = time.perf_counter()
            manifest.verify(checkpoints.folder / "1", 1, {}, state)
            seconds.append(time.perf_counter() - began)
    say(f"verified {size(state) / 1e6:.0f} MB in {quartiles(seconds).median:.2f} s")
    return seconds


def main() -> None:
    """Measure both and print the results."""
    asked = options(__doc__, [500], 3)
    shares = [share for steps in asked.lengths for share in training(steps, asked.repeat)]
    seconds = verifying(asked.repeat)
    claims = [
        claim("percent of the training time of dates spent saving", [100 * share for share in shares], most=3),
        claim("seconds to verify 500 MB", seconds, most=1),
    ]
    finish(__file__, asked.save, claims, shares=shares, seconds=seconds)


if __name__ == "__main__":
    main()
