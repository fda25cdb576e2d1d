"""The training loop: it continues from the last checkpoint to the last step, and records, evaluates and saves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import PyTree

from attnlab.storage.json_file import JsonObject
from attnlab.system.signals import Interrupted, collect_signals, reached
from attnlab.training.averaging import accumulate_mean, averaged, averaged_steps
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.config import Train
from attnlab.training.progress import Progress
from attnlab.training.state import State, parameter_names
from attnlab.training.stopping import early_stop
from attnlab.training.trainer import VALIDATED, Trainer


@dataclass
class Fitted:
    """The result of training: the final state, the models and the resources that it took."""

    state: State
    """The final state of all lanes."""
    model: PyTree
    """The model of every lane that is tested: the last, the mean of the last few, or the best on the validation data.
    """
    step: int
    """The last step that was made. It is less than planned if every lane stopped early."""
    diverged_step: np.ndarray
    """For each lane, the step at which its numbers ceased to be finite, or -1 if it did not diverge."""
    first_nonfinite: list[str | None]
    """For each lane, the name of the first non-finite quantity, or None if all are finite."""
    seconds: float
    """The total training time in seconds, without the time between an interruption and the restart."""
    compile_seconds: float
    """The time that was spent on compiling programs, or on waiting for them, in seconds."""
    seconds_per_step: float | None
    """The median time of a step in seconds, without compilation. None if no step was made."""
    memory_bytes: int | None
    """The peak memory of training in bytes, as estimated by the compiler. None if no step was made."""


def fit(
    trainer: Trainer,
    checkpoints: Checkpoints,
    record: Callable[[list[dict]], None],
    truncate: Callable[[int], None],
    progress: Progress,
    limit: int | None = VALIDATED,
) -> Fitted:
    """Trains every lane to its last step, starting from the newest checkpoint if there is one.

    A lane that diverges keeps the values that it had before the diverging step. The step and the non-finite quantity
    are reported to `progress`.

    Args:
        trainer: The trainer of all lanes.
        checkpoints: Where the state is saved and restored.
        record: Called as `record(rows)` after each dispatch, with one row of metrics for each lane.
        truncate: Called as `truncate(step)` once at the start. It must drop recorded rows after the step from which
            training continues.
        progress: A listener, see `attnlab.training.progress.Progress`.
        limit: The number of validation examples for each evaluation. None uses all.

    Returns:
        The final state and models.

    Raises:
        Interrupted: On a signal, after saving.
        CheckpointError: If the disk has no room for the checkpoints that will be saved.
    """
    train = trainer.train
    state, step, before = _begin(trainer, checkpoints)
    _check_room(train, checkpoints, state, step)
    truncate(step)
    watch, saved, names = _Watch(trainer, before), step, parameter_names(state.model)
    with collect_signals(progress.note) as caught:
        while step < train.steps and _learning(state) and not caught:
            batches, count = trainer.batches(step, _boundary(train, step))
            diverged = np.asarray(state.diverged_step)
            with watch.dispatch(count):
                state, metrics = trainer.advance(state, batches, count)
            step += count
            for line in _lost(train, state, diverged, names, saved):
                progress.note(line)
            state = accumulate_mean(train, state, step)
            rows, selection_score = _rows(train, step, watch.seconds, metrics), None
            progress.advanced(step, float(np.mean(metrics["loss"][:, _shown(state)])))
            if step % train.evaluate_every == 0 or step == train.steps:
                scores = _evaluate(trainer, state, limit, rows)
                state, selection_score = _judge(trainer, state, scores)
                means = _means([scores[n] for n in _shown(state)])
                progress.evaluated(step, {trainer.problem.declared(name): mean for name, mean in means.items()})
            record(rows)
            if step % train.save_every == 0 or step == train.steps or not _learning(state) or caught:
                checkpoints.save(step, state, watch.elapsed(), selection_score)
                saved = step
                progress.saved(step)
        if caught:
            if saved != step:
                checkpoints.save(step, state, watch.elapsed())
            # Also after the last step: the test that follows takes long, and the same command resumes there.
            raise Interrupted(caught[0], reached(step))
    return Fitted(
        state, averaged(train, state, step), step, np.asarray(state.diverged_step), _named(state, names),
        **watch.elapsed(),
    )  # fmt: skip


class _Watch:
    """Measures the training time across restarts, the time of a step without compilation, and the memory."""

    def __init__(self, trainer: Trainer, before: JsonObject):
        self.trainer, self.before = trainer, before
        self.began, self.step_seconds = time.perf_counter(), []

    @contextmanager
    def dispatch(self, count: int) -> Iterator[None]:
        """Times one dispatch of `count` steps."""
        ready, compiled = time.perf_counter(), self.trainer.compile_seconds
        yield
        compiling = self.trainer.compile_seconds - compiled
        self.step_seconds.append((time.perf_counter() - ready - compiling) / count)

    @property
    def seconds(self) -> float:
        """The training time so far in seconds, including earlier runs."""
        return self.before["seconds"] + time.perf_counter() - self.began

    def elapsed(self) -> JsonObject:
        """Returns the total and compilation seconds, and the seconds and bytes of a step, under the names in `Fitted`.

        If no step was made since the restart, the step time and memory are those of the earlier run.
        """
        # The median is robust to single slow dispatches on a busy machine.
        per_step = (
            round(float(np.median(self.step_seconds)), 5) if self.step_seconds else self.before.get("seconds_per_step")
        )
        return {
            "seconds": self.seconds,
            "compile_seconds": self.before["compile_seconds"] + self.trainer.compile_seconds,
            "seconds_per_step": per_step,
            "memory_bytes": self.trainer.memory_bytes if self.step_seconds else self.before.get("memory_bytes"),
        }


def _begin(trainer: Trainer, checkpoints: Checkpoints) -> tuple[State, int, JsonObject]:
    """Returns the state to start from, its step, and the facts of its checkpoint."""
    nothing = {"seconds": 0.0, "compile_seconds": 0.0}
    checkpoints.sweep()
    if not checkpoints.steps():
        return trainer.start(), 0, nothing
    step, state, facts = checkpoints.restore(jax.eval_shape(trainer.start)) or (0, trainer.start(), nothing)
    return state, step, facts


def _boundary(train: Train, step: int) -> int:
    """Returns the next step after which an evaluation, a checkpoint, an averaging step or the end is due."""
    regular = (step - step % every + every for every in (train.evaluate_every, train.save_every))
    return min(train.steps, *regular, *(at for at in averaged_steps(train) if at > step))


def _rows(train: Train, step: int, seconds: float, metrics: dict[str, np.ndarray]) -> list[dict]:
    """Returns one row for each lane: the mean of each metric over the dispatch."""
    return [
        {"step": step, "seed": seed, "learning_rate": rate, "seconds": round(seconds, 3)}
        | {name: float(np.mean(values[:, n])) for name, values in metrics.items()}
        for n, (seed, rate) in enumerate(train.lanes)
    ]


def _learning(state: State) -> bool:
    """Returns whether any lane is still training."""
    return bool(np.any(np.asarray(state.is_training)))


def _shown(state: State) -> np.ndarray:
    """Returns the lanes that reported means cover: those that did not diverge, or all if every lane diverged."""
    alive = np.asarray(state.alive)
    return np.flatnonzero(alive if alive.any() else ~alive)


def _check_room(train: Train, checkpoints: Checkpoints, state: State, step: int) -> None:
    """Raises CheckpointError if the disk will be full before the last step."""
    ahead = [*range(step - step % train.save_every + train.save_every, train.steps, train.save_every), train.steps]
    if step < train.steps:
        # One more than are kept, because the next is written before an old one is dropped. The scores decrease with
        # the step: in the worst case the best checkpoints are the first ones and add to the newest.
        kept = checkpoints.keep.of({at: -float(at) for at in ahead})
        checkpoints.check_room(state, max(1, min(len(kept) + 1, len(ahead)) - len(checkpoints.steps())))


def _lost(train: Train, state: State, before: np.ndarray, names: list[str], saved: int) -> list[str]:
    """Returns a message for each lane that has diverged since `before`, an earlier `diverged_step`."""
    found, quantity = np.asarray(state.diverged_step), _named(state, names)
    good = f"the last good checkpoint is that of step {saved}" if saved else "no checkpoint was saved yet"
    return [
        f"seed {seed} at learning rate {rate:g} diverged in step {found[n] + 1}: {quantity[n]} is not finite; "
        f"its state before that step is kept, and {good}"
        for n, (seed, rate) in enumerate(train.lanes)
        if found[n] >= 0 > before[n]
    ]


def _named(state: State, names: list[str]) -> list[str | None]:
    return [names[n] if n >= 0 else None for n in np.asarray(state.first_nonfinite)]


def _evaluate(trainer: Trainer, state: State, limit: int | None, rows: list[dict]) -> list[dict[str, float]]:
    """Evaluates every lane on the validation data, and adds the metrics to its row."""
    scores = trainer.evaluate(state.model, "valid", limit)
    for row, score in zip(rows, scores, strict=True):
        row |= {f"valid.{name}": value for name, value in score.items() if "." not in name}
    return scores


def _judge(trainer: Trainer, state: State, scores: list[dict[str, float]]) -> tuple[State, float | None]:
    """Returns the state after early stopping, and the selection score of the step (more is better).

    The score of a learning rate is the mean of the primary metric over its lanes that did not diverge, negated if
    lower is better. The selection score is that of the best learning rate, or None if no learning rate has a finite
    score.
    """
    problem, train, alive = trainer.problem, trainer.train, np.asarray(state.alive)
    values = np.array([score[problem.metric.name] for score in scores])
    rates = np.array([rate for _, rate in train.lanes])
    means = [np.mean(values[alive & (rates == rate)]) for rate in set(rates[alive].tolist())]
    signed = [float(mean) * (1 if problem.metric.higher else -1) for mean in means if np.isfinite(mean)]
    selection_score = max(signed, default=None)
    if train.patience or train.target is not None:
        state = early_stop(train, state, values, problem.metric.higher, problem.pretraining_steps)
    return state, selection_score


def _means(scores: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([score[name] for score in scores])) for name in scores[0] if "." not in name}
