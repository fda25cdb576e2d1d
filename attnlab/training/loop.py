"""The loop: from the last checkpoint to the last step, recording, evaluating and saving on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from attnlab.system.signals import Interrupted, collected, reached
from attnlab.training.averaging import accumulate_mean, averaged, averaged_steps
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.state import parameter_names
from attnlab.training.stopping import early_stop
from attnlab.training.trainer import Trainer


@dataclass
class Fitted:
    """What training left: the final state and models, and the seconds that all of it took, interruptions apart."""

    state: Any
    model: Any  # every lane's: the last, the mean of the last few, or the best on validation
    step: int  # the last one made: fewer than planned where every lane was done before
    diverged_step: np.ndarray  # the step at which each lane's numbers ceased to be finite; -1 where they did not
    first_nonfinite: list[str | None]  # what of each lane was not finite first; None where all of it was
    seconds: float
    compile_seconds: float
    seconds_per_step: float | None  # None where no step was to be made
    memory_bytes: int | None  # of training, as the compiler estimates its peak; None likewise


def fit(
    trainer: Trainer,
    checkpoints: Checkpoints,
    record: Callable[[list[dict]], None],
    cut: Callable[[int], None],
    progress: Any,
    limit: int | None = 512,
) -> Fitted:
    """Train every lane to its last step; from the newest checkpoint, if there is one.

    `record(rows)` keeps a row for every lane of every dispatch; `cut(step)` drops those behind the step that training
    goes on from. Validation looks at `limit` examples. A lane that diverges is told to `progress`, with the step and
    what was not finite, and stays as it was before. Raises Interrupted on a signal, after saving, and
    CheckpointError where there is no room for what will be saved.
    """
    train = trainer.train
    state, step, before = _begin(trainer, checkpoints)
    _check_room(train, checkpoints, state, step)
    cut(step)
    watch, saved, names = _Watch(trainer, before), step, parameter_names(state.model)
    with collected(progress.note) as caught:
        while step < train.steps and _learning(state) and not caught:
            batches, count = trainer.batches(step, _boundary(train, step))
            lost = np.asarray(state.diverged_step)
            with watch.dispatch(count):
                state, metrics = trainer.advance(state, batches, count)
            step += count
            for line in _lost(train, state, lost, names, saved):
                progress.note(line)
            state = accumulate_mean(train, state, step)
            rows, merit = _rows(train, step, watch.seconds, metrics), None
            progress.advanced(step, float(np.mean(metrics["loss"][:, _shown(state)])))
            if step % train.evaluate_every == 0 or step == train.steps:
                scores = _evaluate(trainer, state, limit, rows)
                state, merit = _judge(trainer, state, scores)
                progress.evaluated(step, _means([scores[n] for n in _shown(state)]))
            record(rows)
            if step % train.save_every == 0 or step == train.steps or not _learning(state) or caught:
                checkpoints.save(step, state, watch.elapsed(), merit)
                saved = step
                progress.saved(step)
        if caught:
            if saved != step:
                checkpoints.save(step, state, watch.elapsed())
            # After the last step too: examining it takes long, and the same command goes on to that.
            raise Interrupted(caught[0], reached(step))
    return Fitted(
        state, averaged(train, state, step), step, np.asarray(state.diverged_step), _named(state, names),
        **watch.elapsed(),
    )  # fmt: skip


class _Watch:
    """The seconds since the first start, interruptions apart, those of a step without compilation, and its memory."""

    def __init__(self, trainer: Trainer, before: dict[str, Any]):
        self.trainer, self.before = trainer, before
        self.began, self.paces = time.perf_counter(), []

    @contextmanager
    def dispatch(self, count: int) -> Iterator[None]:
        """Time a dispatch of `count` steps."""
        ready, compiled = time.perf_counter(), self.trainer.compile_seconds
        yield
        compiling = self.trainer.compile_seconds - compiled
        self.paces.append((time.perf_counter() - ready - compiling) / count)

    @property
    def seconds(self) -> float:
        """Those so far."""
        return self.before["seconds"] + time.perf_counter() - self.began

    def elapsed(self) -> dict[str, Any]:
        """The seconds so far, all and those of compilation; of a step its seconds and bytes.

        Where none was made since it was taken up again, those of before.
        """
        # The median, so that a noisy machine does not count.
        pace = round(float(np.median(self.paces)), 5) if self.paces else self.before.get("seconds_per_step")
        return {
            "seconds": self.seconds,
            "compile_seconds": self.before["compile_seconds"] + self.trainer.compile_seconds,
            "seconds_per_step": pace,
            "memory_bytes": self.trainer.memory_bytes if self.paces else self.before.get("memory_bytes"),
        }


def _begin(trainer: Trainer, checkpoints: Checkpoints) -> tuple[Any, int, dict[str, Any]]:
    nothing = {"seconds": 0.0, "compile_seconds": 0.0}
    checkpoints.sweep()
    if not checkpoints.steps():
        return trainer.start(), 0, nothing
    step, state, facts = checkpoints.restore(jax.eval_shape(trainer.start)) or (0, trainer.start(), nothing)
    return state, step, facts


def _boundary(train: Any, step: int) -> int:
    """The next step at which something other than training happens."""
    regular = (step - step % every + every for every in (train.evaluate_every, train.save_every))
    return min(train.steps, *regular, *(at for at in averaged_steps(train) if at > step))


def _rows(train: Any, step: int, seconds: float, metrics: dict[str, np.ndarray]) -> list[dict]:
    """A row for every lane: the mean over the dispatch of each metric."""
    return [
        {"step": step, "seed": seed, "learning_rate": rate, "seconds": round(seconds, 3)}
        | {name: float(np.mean(values[:, n])) for name, values in metrics.items()}
        for n, (seed, rate) in enumerate(train.lanes)
    ]


def _learning(state: Any) -> bool:
    """Whether any lane still moves."""
    return bool(np.any(np.asarray(state.is_training)))


def _shown(state: Any) -> np.ndarray:
    """The lanes whose mean is told on the way: those that did not diverge, or all where every one did."""
    alive = np.asarray(state.alive)
    return np.flatnonzero(alive if alive.any() else ~alive)


def _check_room(train: Any, checkpoints: Checkpoints, state: Any, step: int) -> None:
    """Refuse a disk that will be full before the last step."""
    ahead = [*range(step - step % train.save_every + train.save_every, train.steps, train.save_every), train.steps]
    if step < train.steps:
        # One more than are kept, for the next is written before the last goes; the best may be the first ones.
        kept = checkpoints.keep.of({at: -float(at) for at in ahead})
        checkpoints.check_room(state, max(1, min(len(kept) + 1, len(ahead)) - len(checkpoints.steps())))


def _lost(train: Any, state: Any, before: np.ndarray, names: list[str], saved: int) -> list[str]:
    """A line for each lane that has diverged since it was looked at `before`."""
    found, told = np.asarray(state.diverged_step), _named(state, names)
    good = f"the last good checkpoint is that of step {saved}" if saved else "no checkpoint was saved yet"
    return [
        f"seed {seed} at learning rate {rate:g} diverged in step {found[n] + 1}: {told[n]} is not finite; "
        f"it stays as it was before, {good}"
        for n, (seed, rate) in enumerate(train.lanes)
        if found[n] >= 0 > before[n]
    ]


def _named(state: Any, names: list[str]) -> list[str | None]:
    return [names[n] if n >= 0 else None for n in np.asarray(state.first_nonfinite)]


def _evaluate(trainer: Trainer, state: Any, limit: int | None, rows: list[dict]) -> list[dict[str, float]]:
    """Validate every lane into its row."""
    scores = trainer.evaluate(state.model, "valid", limit)
    for row, score in zip(rows, scores, strict=True):
        row |= {f"valid.{name}": value for name, value in score.items() if "." not in name}
    return scores


def _judge(trainer: Trainer, state: Any, scores: list[dict[str, float]]) -> tuple[Any, float | None]:
    """The state, lanes that are done by these scores stopped; the merit of the rate that stands best: more is better.

    A rate's merit is the mean over its lanes that did not diverge; None where no rate has a finite one.
    """
    problem, train, alive = trainer.problem, trainer.train, np.asarray(state.alive)
    values = np.array([score[problem.metric] for score in scores])
    rates = np.array([rate for _, rate in train.lanes])
    means = [np.mean(values[alive & (rates == rate)]) for rate in set(rates[alive].tolist())]
    signed = [float(mean) * (1 if problem.higher else -1) for mean in means if np.isfinite(mean)]
    merit = max(signed, default=None)
    if train.patience or train.target is not None:
        state = early_stop(train, state, values, problem.higher, problem.pretraining_steps)
    return state, merit


def _means(scores: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([score[name] for score in scores])) for name in scores[0] if "." not in name}
