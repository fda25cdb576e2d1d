"""The result of a trained variant: the content of `result.json`."""

from __future__ import annotations

import resource
import sys
from typing import Any

import numpy as np

from attnlab.lab.planning.ledger import Costs
from attnlab.lab.results.declared import entries
from attnlab.lab.statistics import Choice, choose, leaders, summaries
from attnlab.lab.study.study import Experiment
from attnlab.tasks.base.task import TaskData
from attnlab.training.averaging import averaged_steps, tested_model
from attnlab.training.config import Train
from attnlab.training.loop import Fitted

Scores = list[dict[str, float]]  # the metrics of every lane


def result(
    experiment: Experiment,
    problem: TaskData,
    fitted: Fitted,
    valid: Scores | None,
    test: Scores,
    examples: int | None,
    costs: Costs | dict[str, None],
    losses: list[float] | None = None,
    last: Scores | None = None,
) -> dict[str, Any]:
    """Build the content of `result.json`.

    `statistics.choose` chooses one of several learning rates by the primary metric on validation. The intervals of the
    primary metric and of its parts ("exact_match.de") account for this choice. The intervals of other metrics do not,
    because it is not known in which direction they are good. Lanes that diverged are listed and never averaged. A
    metric that is not finite for some seed has its values and no mean.

    Args:
        experiment: the experiment.
        problem: its data, with the name and direction of the primary metric.
        fitted: the trained lanes.
        valid: the metrics of every lane on validation, or None if there is only one learning rate.
        test: the metrics of every lane on test.
        examples: the number of test examples of which the primary metric is a fraction, or None if it is no fraction.
        costs: "parameters", "flops" and "state_bytes" of the variant.
        losses: the losses of all lanes on validation, if rates share the best primary metric (`rates_are_tied`).
        last: the metrics of the last models on test, if other models were tested.

    Returns:
        The metrics on test over the seeds of the chosen learning rate, the choice, and the costs.
    """
    train = experiment.train
    alive, stopped = np.asarray(fitted.state.alive), np.asarray(fitted.state.stopped)
    by_rate = _by_rate(experiment, problem, valid, alive, losses)
    choice = _choose(by_rate, problem.metric.higher)
    rate, contenders = train.rates[choice.best], [train.rates[n] for n in choice.contenders]
    chosen = [n for n, (_, at) in enumerate(train.lanes) if at == rate and alive[n]]

    over = lambda scores: summaries(
        [scores[n] for n in chosen], problem.metric.name, problem.metric.higher, len(contenders)
    )
    return {
        "metrics": over(test),
        "declared": entries({**problem.metrics, **{name: problem.declared(name) for name in test[0]}}.values()),
        "tested_model": tested_model(train),
        **({"tested_steps": _tested_steps(train, fitted, chosen), "last_metrics": over(last)} if last else {}),
        "examples": examples,
        "metric": problem.metric.name,
        "higher": problem.metric.higher,
        "seeds": [train.lanes[n][0] for n in chosen],
        "learning_rate": rate,
        "learning_rates": list(train.rates),
        "contenders": contenders,
        "by_rate": by_rate,
        "diverged": [
            {
                "seed": seed,
                "learning_rate": at,
                "step": int(fitted.diverged_step[n]) + 1,
                "first_nonfinite": fitted.first_nonfinite[n],
            }
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
        "memory_bytes": fitted.memory_bytes,
        "peak_memory": peak_memory(),
        "fingerprint": problem.fingerprint,
    }


def _tested_steps(train: Train, fitted: Fitted, lanes: list[int]) -> list[int]:
    """Return the steps whose models were averaged, or the step of each lane's best model."""
    if tested_model(train) == "mean":
        return averaged_steps(train)
    best = np.asarray(fitted.state.best_step)
    # A lane without a finite validation score has no best model, so its last one was tested.
    return [int(best[n]) if best[n] >= 0 else fitted.step for n in lanes]


def rates_are_tied(experiment: Experiment, problem: TaskData, fitted: Fitted, valid: Scores | None) -> bool:
    """Return whether several learning rates share the best primary metric on validation, so that losses must decide.

    Args:
        experiment: the experiment.
        problem: its data, with the name and direction of the primary metric.
        fitted: the trained lanes.
        valid: the metrics of every lane on validation, or None if there is only one learning rate.
    """
    by_rate = _by_rate(experiment, problem, valid, np.asarray(fitted.state.alive))
    return bool(by_rate) and len(leaders(_table(by_rate, "values"), problem.metric.higher)) > 1


def _by_rate(
    experiment: Experiment,
    problem: TaskData,
    valid: Scores | None,
    alive: np.ndarray,
    losses: list[float] | None = None,
) -> list[dict]:
    """Return the primary metric and losses on validation per rate, in order of seeds, None for diverged lanes."""
    if valid is None:
        return []
    columns = {"values": [scores[problem.metric.name] for scores in valid]} | (
        {} if losses is None else {"losses": losses}
    )
    # A lane that diverged is frozen at its last finite state, so its numbers do not describe its rate.
    lanes = {lane: n for n, lane in enumerate(experiment.train.lanes)}
    sound = lambda column, n: column[n] if alive[n] else None
    return [
        {"learning_rate": rate}
        | {
            name: [sound(column, lanes[seed, rate]) for seed in experiment.train.seed_list]
            for name, column in columns.items()
        }
        for rate in experiment.train.rates
    ]


def _choose(by_rate: list[dict], higher: bool) -> Choice:
    """Choose the learning rate. Without validation scores there is only one."""
    if not by_rate:
        return Choice(0, (0,))
    losses = _table(by_rate, "losses") if "losses" in by_rate[0] else None
    return choose(_table(by_rate, "values"), higher, losses)


def _table(by_rate: list[dict], name: str) -> list[tuple]:
    """Return the numbers of one column as a table [seeds, rates]."""
    return list(zip(*(entry[name] for entry in by_rate), strict=True))


def peak_memory() -> int:
    """Return the peak memory of this process so far, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
