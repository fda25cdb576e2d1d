"""The loop: from the last checkpoint to the last step, recording, evaluating and saving on the way."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from attnlab.training.averaging import chosen, include
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.stopping import judge
from attnlab.training.trainer import Trainer


class Interrupted(Exception):
    """A signal ended training; all was saved. `exit_code` is 128 + the signal's number."""

    def __init__(self, number: int, step: int):
        super().__init__(
            f"stopped by {signal.Signals(number).name} at step {step}, saved; the same command goes on from there"
        )
        self.exit_code = 128 + number


@dataclass
class Fitted:
    """What training left: the final state and models, and the seconds that all of it took, interruptions apart."""

    state: Any
    model: Any  # every lane's: the last, or the mean of the last few
    step: int  # the last one made: fewer than planned where every lane was done before
    died: np.ndarray  # the step at which each lane's numbers ceased to be finite; -1 where they did not
    seconds_per_step: float | None
    seconds: float
    compile_seconds: float
    memory_bytes: int | None  # of training, as the compiler estimates its peak; None where no step was left to make


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
    goes on from. Validation looks at `limit` examples. Raises Interrupted on SIGINT or SIGTERM, after saving.
    """
    train = trainer.train
    state, step, before = _begin(trainer, checkpoints)
    cut(step)
    watch, saved = _Watch(trainer, before), step
    with _signals() as caught:
        while step < train.steps and _learning(state) and not caught:
            batches, count = trainer.batches(step, _boundary(train, step))
            with watch.dispatch(count):
                state, metrics = trainer.advance(state, batches, count)
            step += count
            state = include(train, state, step)
            rows = _rows(train, step, watch.elapsed()["seconds"], metrics)
            progress.advanced(step, float(np.mean(metrics["loss"])))
            if step % train.evaluate_every == 0 or step == train.steps:
                scores = _evaluate(trainer, state, limit, rows)
                state = _judge(trainer, state, scores)
                progress.evaluated(step, _means(scores))
            record(rows)
            if step % train.save_every == 0 or step == train.steps or not _learning(state) or caught:
                checkpoints.save(step, state, watch.elapsed())
                saved = step
                progress.saved(step)
        if caught:
            if saved != step:
                checkpoints.save(step, state, watch.elapsed())
            # After the last step too: examining it takes long, and the same command goes on to that.
            raise Interrupted(caught[0], step)
    return Fitted(
        state, chosen(train, state, step), step, np.asarray(state.died), watch.pace(), **watch.elapsed(),
        memory_bytes=trainer.memory_bytes,
    )  # fmt: skip


class _Watch:
    """The seconds since the first start, interruptions apart, and those of a step without compilation."""

    def __init__(self, trainer: Trainer, before: dict[str, float]):
        self.trainer, self.before = trainer, before
        self.began, self.paces = time.perf_counter(), []

    @contextmanager
    def dispatch(self, count: int) -> Iterator[None]:
        """Time a dispatch of `count` steps."""
        ready, compiled = time.perf_counter(), self.trainer.compile_seconds
        yield
        compiling = self.trainer.compile_seconds - compiled
        self.paces.append((time.perf_counter() - ready - compiling) / count)

    def pace(self) -> float | None:
        """Seconds a step; None where none was trained."""
        # The median, so that a noisy machine does not count.
        return round(float(np.median(self.paces)), 5) if self.paces else None

    def elapsed(self) -> dict[str, float]:
        """The seconds so far, all and those of compilation."""
        return {
            "seconds": self.before["seconds"] + time.perf_counter() - self.began,
            "compile_seconds": self.before["compile_seconds"] + self.trainer.compile_seconds,
        }


def _begin(trainer: Trainer, checkpoints: Checkpoints) -> tuple[Any, int, dict[str, float]]:
    nothing = {"seconds": 0.0, "compile_seconds": 0.0}
    if not checkpoints.steps():
        return trainer.start(), 0, nothing
    step, state, facts = checkpoints.restore(jax.eval_shape(trainer.start)) or (0, trainer.start(), nothing)
    return state, step, facts


def _boundary(train: Any, step: int) -> int:
    """The next step at which something other than training happens."""
    return min(train.steps, *(step - step % every + every for every in (train.evaluate_every, train.save_every)))


def _rows(train: Any, step: int, seconds: float, metrics: dict[str, np.ndarray]) -> list[dict]:
    """A row for every lane: the mean over the dispatch of each metric."""
    return [
        {"step": step, "seed": seed, "learning_rate": rate, "seconds": round(seconds, 3)}
        | {name: float(np.mean(values[:, n])) for name, values in metrics.items()}
        for n, (seed, rate) in enumerate(train.lanes)
    ]


def _learning(state: Any) -> bool:
    """Whether not every lane was done early: of those that diverged it is not asked, unless all did."""
    done = np.asarray(state.stopped) >= 0
    return not done.any() or bool(np.any(np.asarray(state.alive) & ~done))


def _evaluate(trainer: Trainer, state: Any, limit: int | None, rows: list[dict]) -> list[dict[str, float]]:
    """Validate every lane into its row."""
    scores = trainer.evaluate(state.model, "valid", limit)
    for row, score in zip(rows, scores, strict=True):
        row |= {f"valid.{name}": value for name, value in score.items() if "." not in name}
    return scores


def _judge(trainer: Trainer, state: Any, scores: list[dict[str, float]]) -> Any:
    """The state, lanes that are done by these scores stopped."""
    if not trainer.train.patience and trainer.train.target is None:
        return state
    problem = trainer.problem
    return judge(trainer.train, state, np.array([score[problem.metric] for score in scores]), problem.higher)


def _means(scores: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([score[name] for score in scores])) for name in scores[0] if "." not in name}


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM, so that a dispatch is finished and saved; a second one acts at once."""
    caught: list[int] = []

    def handle(number, frame):
        if caught:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        caught.append(number)

    try:
        old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread, as in a notebook's worker: signals are not ours
        old = {}
    try:
        yield caught
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
