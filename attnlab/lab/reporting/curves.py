"""Learning curves as numbers: what each seed recorded, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.console.format import number
from attnlab.lab.results.estimates import is_rate
from attnlab.lab.results.outcome import Outcome
from attnlab.lab.statistics import interval

POINTS = 160  # more are averaged together: no screen shows them apart


@dataclass(frozen=True)
class Curve:
    """One variant: steps [N], values [N seeds] of its whole seeds, and the points of seeds cut short."""

    name: str
    order: int
    steps: np.ndarray
    values: np.ndarray
    cut: tuple[tuple[np.ndarray, np.ndarray], ...]

    def band(self) -> tuple[np.ndarray, np.ndarray] | None:
        """From five seeds on the 95% interval of the mean, below that the least and the greatest value.

        An interval of numbers above 0, such as a loss, that reaches below it ends at the least value.
        """
        seeds = self.values.shape[1]
        if seeds < 2:
            return None
        if seeds < 5:
            return self.values.min(1), self.values.max(1)
        low, high = zip(*map(interval, self.values), strict=True)
        least = self.values.min(1)
        return np.where((least > 0) & (np.array(low) <= 0), least, low), np.array(high)


def curve(outcome: Outcome, key: str) -> Curve | None:
    """What a finished run recorded under `key` at the learning rate it chose; None where nothing was.

    A seed that diverged, or has no number at some step where others have one, is kept out of mean and band, and drawn
    by itself as far as it goes: what is recorded after is of a lane that stands still.
    """
    seeds = _by_seed(outcome, key)
    ends = {lane.get("seed"): number(lane.get("step")) or 0 for lane in outcome.lost()}
    seeds = {seed: _until(values, ends.get(seed)) for seed, values in seeds.items()}
    steps = np.array(sorted({step for values in seeds.values() for step in values}))
    if not len(steps):
        return None
    whole = {seed: values for seed, values in seeds.items() if len(values) == len(steps) and seed not in ends}
    cut = tuple(_points(values) for seed, values in seeds.items() if values and seed not in whole)
    table = np.array([[values[step] for values in whole.values()] for step in steps])
    return Curve(outcome.name, outcome.order, *_thin(steps, table.reshape(len(steps), -1)), cut)


def _by_seed(outcome: Outcome, key: str) -> dict[int, dict[int, float]]:
    rate = number((outcome.result or {}).get("learning_rate"))
    seeds: dict[int, dict[int, float]] = {}
    for row in outcome.rows:
        value = number(row.get(key))
        if value is not None and (rate is None or is_rate(row["learning_rate"], rate)):
            seeds.setdefault(row["seed"], {})[row["step"]] = value
    return seeds


def _until(values: dict[int, float], end: float | None) -> dict[int, float]:
    """What was recorded up to a step, all of it where none is given."""
    return {step: value for step, value in values.items() if end is None or step <= end}


def _points(values: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    steps = sorted(values)
    return np.array(steps), np.array([values[step] for step in steps])


def _thin(steps: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size = -(-len(steps) // POINTS)
    if size < 2:
        return steps, values
    starts = np.arange(0, len(steps), size)
    counts = np.diff(starts, append=len(steps))
    return np.add.reduceat(steps, starts) / counts, np.add.reduceat(values, starts) / counts[:, None]
