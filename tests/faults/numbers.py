"""A number that is not finite, at a random step, in a random leaf of a random seed.

NaN or infinity (or a number whose square is) is added to the gradient of one leaf, to a leaf as the loss sees it, or
to the loss itself, for one lane and one step. The run must freeze that lane as it was before the step and
name step, leaf, seed, rate and the last good checkpoint; its neighbours, in the same program, must go on to the same
bits as without it.
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
# A loss of 3e38 is finite, and so may be what follows from a leaf that large; of a gradient the square is not.
HARMS = (np.nan, np.inf, -np.inf, 3e38)
PLACES = ("gradient", "leaf", "loss")


def run(count: int, seed: int, folder: Path) -> Count:
    """So many injections, one run each."""

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
    """One run with one number spoilt. Raises Fault where it was not caught, not named, or reached a neighbour."""
    trainer, rows, states = sound()
    told, found, trainer.harm = [], [], (place, harm, step, lane, leaf)
    fitted = _train(trainer, folder, found, told)
    seed, rate = TRAIN.lanes[lane]
    if fitted.diverged_step.tolist() != [step if n == lane else -1 for n in range(len(TRAIN.lanes))]:
        raise Fault(f"the steps at which lanes diverged are {fitted.diverged_step.tolist()}")
    # A leaf that is large spoils what it comes to first: the loss, or a gradient.
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
    """A trainer whose `harm` (place, value, step, lane, leaf) is done to one lane at one step; None: to none."""

    harm: tuple[str, float, int, int, int] | None = None

    def batches(self, step: int, stop: int) -> tuple[Steps, int]:
        """The problem's, and what is added to what: [steps, lanes, B, places, leaves], of which one row counts."""
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
    """A problem whose batches say what is added to the gradient of each leaf, to each leaf, and to the loss."""

    def __init__(self, problem: Any):
        self._problem = problem

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def loss(self, model: Any, batch: dict[str, Any], key: Any) -> tuple[Any, dict[str, Any]]:
        """The problem's, spoilt."""
        harm = batch["harm"].sum(axis=0)
        values, tree = jax.tree.flatten(model)
        spoilt = [poisoned(x + harm[1, n], harm[0, n]) for n, x in enumerate(values)]
        value, metrics = self._problem.loss(tree.unflatten(spoilt), batch, key)
        return value + harm[2].sum(), metrics


@jax.custom_vjp
def poisoned(x: Any, harm: Any) -> Any:
    """x, to whose gradient `harm` is added."""
    return x


poisoned.defvjp(lambda x, harm: (x, harm), lambda harm, gradient: (gradient + harm, jnp.zeros_like(harm)))


@cache
def sound() -> tuple[Spoiling, list[dict], list[dict[str, np.ndarray]]]:
    """A trainer that keeps its programs; the rows of the run in which nothing is spoilt, and its state at each step."""
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
    """What the rows of the other lanes say, the clock's time apart."""
    others = [row for row in rows if (row["seed"], row["learning_rate"]) != (seed, rate)]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in others]
