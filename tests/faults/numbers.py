"""Checks how training handles a number that is not finite, at a random step, in a random leaf of a random seed.

NaN, infinity or a number whose square is infinite is added to the gradient of one leaf, to a leaf as the loss sees it,
or to the loss itself. This happens in one lane and one step. The run must freeze that lane in its state before the
step. It must name the step, leaf, seed, rate and last good checkpoint. The other lanes, in the same program, must
continue to the same bits as without the fault.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.models import Language
from attnlab.tasks.synthetic.recall import Recall
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.config import Train
from attnlab.training.loop import fit
from attnlab.training.shapes import Steps
from attnlab.training.state import parameter_names
from attnlab.training.state_files import flatten
from attnlab.training.trainer import Trainer
from tests.faults.count import Count, Fault, tried

FULL, SHORT = 200, 10
TASK = Recall(vocabulary=6, pairs=2, valid_examples=4, test_examples=4)
MODEL = Language(width=4, heads=1, layers=1, dropout=0.1)
TRAIN = Train(steps=24, batch_size=4, learning_rate=(1e-3, 3e-3), warmup=4, seeds=3, evaluate_every=8, save_every=8)
# 3e38 is only added to gradients, whose square overflows. A loss or a leaf of that size may give finite results.
HARMS = (np.nan, np.inf, -np.inf, 3e38)
PLACES = ("gradient", "leaf", "loss")


def run(count: int, seed: int, folder: Path) -> Count:
    """Runs `count` trainings with one injected number each."""

    def case(n: int) -> list[str]:
        rng = np.random.default_rng([seed, n])
        drawn = [int(rng.integers(size)) for size in (len(PLACES), len(HARMS), TRAIN.steps, len(TRAIN.lanes), 1 << 16)]
        place, (step, lane, leaf) = PLACES[drawn[0]], drawn[2:]
        harm = HARMS[drawn[1] if place == "gradient" else drawn[1] % 3]
        try:
            inject(place, float(harm), step, lane, leaf % len(leaves()), folder / str(n))
        except Fault as fault:
            raise Fault(
                f"{harm} in the {place} (leaf {leaf % len(leaves())}), lane {lane}, step {step}: {fault}"
            ) from None
        finally:
            shutil.rmtree(folder / str(n), ignore_errors=True)
        return [place]

    failures, places = tried(case, count, seed)
    told = ", ".join(f"{places[place]} in {'the ' if place == 'loss' else 'a '}{place}" for place in PLACES)
    return Count(count, failures, told)


def inject(place: str, harm: float, step: int, lane: int, leaf: int, folder: Path) -> None:
    """Trains with one altered number.

    Raises Fault if the number is not detected, is not named, or affects another lane.
    """
    trainer, rows, states = sound()
    told, found, trainer.harm = [], [], (place, harm, step, lane, leaf)
    fitted = _train(trainer, folder, found, told)
    seed, rate = TRAIN.lanes[lane]
    if fitted.diverged_step.tolist() != [step if n == lane else -1 for n in range(len(TRAIN.lanes))]:
        raise Fault(f"the steps at which lanes diverged are {fitted.diverged_step.tolist()}")
    # An altered leaf makes the loss or a gradient non-finite first, so any name is accepted.
    wanted = {
        "gradient": f"the gradient of {leaves()[leaf]}",
        "leaf": fitted.first_nonfinite[lane],
        "loss": "the loss",
    }[place]
    if fitted.first_nonfinite[lane] != wanted:
        raise Fault(f"{fitted.first_nonfinite[lane]} is named, not {wanted}")
    good = step - step % TRAIN.save_every
    said = f"seed {seed} at learning rate {rate:g} diverged in step {step + 1}: "
    said += f"{fitted.first_nonfinite[lane]} is not finite"
    saved = f"checkpoint is that of step {good}" if good else "no checkpoint was saved yet"
    if len(told) != 1 or said not in told[0] or saved not in told[0]:
        raise Fault(f"told was {told}")
    others = [n for n in range(len(TRAIN.lanes)) if n != lane]
    for name, value in flatten(fitted.state).items():
        if name not in (".diverged_step", ".first_nonfinite") and not np.array_equal(
            value[others], states[-1][name][others]
        ):
            raise Fault(f"{name} of a neighbour is another")
        if name.startswith(".model") and not np.array_equal(value[lane], states[step][name][lane]):
            raise Fault(f"{name} of the lane is not what it was before the step")
    if _told(found, seed, rate) != _told(rows, seed, rate):
        raise Fault("a neighbour's rows are others")


class Spoiling(Trainer):
    """A trainer that adds `harm` (place, value, step, lane, leaf) in one lane at one step, or nothing if it is None."""

    harm: tuple[str, float, int, int, int] | None = None

    def batches(self, step: int, stop: int) -> tuple[Steps, int]:
        """Returns the batches with the values to add, an array [steps, lanes, B, places, leaves].

        Only the first of the B rows can be nonzero.
        """
        steps, count = super().batches(step, stop)
        shape = next(iter(steps.batches.values())).shape[:3]
        added = np.zeros((*shape, len(PLACES), len(leaves())), np.float32)
        if self.harm is not None:
            place, value, at, lane, leaf = self.harm
            if step <= at < step + count:
                added[at - step, lane, 0, PLACES.index(place), leaf] = value
        shapes = tuple({**each, "harm": added.shape[2:]} for each in steps.shapes)
        return steps._replace(batches={**steps.batches, "harm": added}, shapes=shapes), count


class Spoilt:
    """A problem whose batches hold the values to add to the gradient of each leaf, to each leaf, and to the loss."""

    def __init__(self, problem: Any):
        self._problem = problem

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def loss(self, model: Any, batch: dict[str, Any], key: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the loss of the problem with the values of the batch added."""
        harm = batch["harm"].sum(axis=0)
        values, tree = jax.tree.flatten(model)
        spoilt = [poisoned(x + harm[1, n], harm[0, n]) for n, x in enumerate(values)]
        value, metrics = self._problem.loss(tree.unflatten(spoilt), batch, key)
        return value + harm[2].sum(), metrics


@jax.custom_vjp
def poisoned(x: Any, harm: Any) -> Any:
    """Returns x. Adds `harm` to the gradient of x."""
    return x


poisoned.defvjp(lambda x, harm: (x, harm), lambda harm, gradient: (gradient + harm, jnp.zeros_like(harm)))


@cache
def sound() -> tuple[Spoiling, list[dict], list[dict[str, np.ndarray]]]:
    """Returns a trainer that keeps its programs, and the rows and states of a run without a fault.

    The states are those at each step.
    """
    problem, rows = Spoilt(TASK.load()), []
    trainer = Spoiling(lambda key: MODEL.create(key, problem.shape), problem, TRAIN)
    with tempfile.TemporaryDirectory() as home:
        _train(trainer, Path(home), rows, [])
    state, states = trainer.start(), []
    for step in range(TRAIN.steps):
        states.append(flatten(state))
        state, _ = trainer.advance(state, trainer.batches(step, step + 1)[0], 1)
    return trainer, rows, [*states, flatten(state)]


@cache
def leaves() -> list[str]:
    """The names of the model's leaves."""
    names = parameter_names(jax.eval_shape(lambda: MODEL.create(jax.random.key(0), TASK.load().shape)))
    return names[1 + len(names) // 2 :]


def _train(trainer: Trainer, folder: Path, rows: list[dict], told: list[str]) -> Any:
    class Listener:
        def advanced(self, *given):
            pass

        evaluated = saved = advanced

        def note(self, text):
            told.append(text)

    return fit(trainer, Checkpoints(folder), rows.extend, lambda step: None, Listener())


def _told(rows: list[dict], seed: int, rate: float) -> list[dict]:
    """Returns the rows of the other lanes without their seconds."""
    others = [row for row in rows if (row["seed"], row["learning_rate"]) != (seed, rate)]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in others]
