"""What a trained variant amounts to: its `result.json`."""

from __future__ import annotations

import resource
import sys
from typing import Any

import numpy as np

from attnlab.lab.statistics import summary
from attnlab.lab.study import Experiment
from attnlab.tasks.base import Problem
from attnlab.training.loop import Fitted

Scores = list[dict[str, float]]  # the metrics of every lane


def result(
    experiment: Experiment, problem: Problem, fitted: Fitted, valid: Scores | None, test: Scores, costs: dict
) -> dict[str, Any]:
    """The metrics of the chosen learning rate over its seeds, and what they cost.

    Of several rates the one with the best mean headline metric on validation is chosen, among those whose lanes all
    converged where there are any. Lanes that diverged are listed and never averaged.
    """
    train = experiment.train
    alive, stopped = np.asarray(fitted.state.alive), np.asarray(fitted.state.stopped)
    rate = _choose(experiment, problem, valid, alive)
    chosen = [n for n, (_, at) in enumerate(train.lanes) if at == rate and alive[n]]
    metrics = {name: summary([test[n][name] for n in chosen]) for name in test[0]} if chosen else {}
    return {
        "metrics": metrics,
        "metric": problem.metric,
        "higher": problem.higher,
        "seeds": [train.lanes[n][0] for n in chosen],
        "learning_rate": rate,
        "learning_rates": list(train.rates),
        "diverged": [
            {"seed": seed, "learning_rate": at, "step": int(fitted.died[n])}
            for n, (seed, at) in enumerate(train.lanes)
            if not alive[n]
        ],
        "stopped": [
            {"seed": seed, "learning_rate": at, "step": int(stopped[n])}
            for n, (seed, at) in enumerate(train.lanes)
            if stopped[n] >= 0
        ],
        **{name: costs[name] for name in ("parameters", "flops", "state_bytes")},
        "steps": fitted.step,
        "seconds": round(fitted.seconds, 2),
        "compile_seconds": round(fitted.compile_seconds, 2),
        "seconds_per_step": fitted.seconds_per_step,
        "peak_memory": peak_memory(),
        "fingerprint": problem.fingerprint,
    }


def _choose(experiment: Experiment, problem: Problem, valid: Scores | None, alive: np.ndarray) -> float:
    train = experiment.train
    if valid is None:
        return train.rates[0]

    def merit(rate: float) -> tuple[bool, float]:
        lanes = [n for n, (_, at) in enumerate(train.lanes) if at == rate]
        mean = float(np.mean([valid[n][problem.metric] for n in lanes]))
        return bool(alive[lanes].all()), mean if problem.higher else -mean

    return max(train.rates, key=merit)


def peak_memory() -> int:
    """The most bytes this process has held so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
