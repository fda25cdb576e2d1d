"""Learning curves as numbers: what each seed recorded at each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.console.format import number
from attnlab.lab.results.estimates import is_rate
from attnlab.lab.results.outcome import Outcome
from attnlab.lab.statistics import interval

POINTS = 160  # of a curve. More are averaged, because a screen cannot show them
ALL_POINTS = 6400  # of all curves of a figure. With more curves, each has fewer points
FEWEST = 20  # points of a curve, however many curves there are


@dataclass(frozen=True)
class Curve:
    """The learning curve of one variant."""

    name: str
    """The name of the variant."""
    order: int
    """Its position in the study, which selects the colour."""
    steps: np.ndarray
    """The steps, `[N]`."""
    values: np.ndarray
    """The values of the complete seeds, `[N, seeds]`."""
    cut: tuple[tuple[np.ndarray, np.ndarray], ...]
    """The steps and values of each incomplete seed."""

    def band(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the band of the seeds: the 95% interval of the mean for five or more, else minimum and maximum.

        The interval of positive values, for example a loss, is cut at the minimum if it includes 0. With one seed the
        band is None.
        """
        seeds = self.values.shape[1]
        if seeds < 2:
            return None
        if seeds < 5:
            return self.values.min(1), self.values.max(1)
        low, high = zip(*map(interval, self.values), strict=True)
        least = self.values.min(1)
        return np.where((least > 0) & (np.array(low) <= 0), least, low), np.array(high)


def points_of(count: int) -> int:
    """Return the largest number of points of each of `count` curves in a figure."""
    return max(FEWEST, min(POINTS, ALL_POINTS // max(1, count)))


def curve(outcome: Outcome, key: str, points: int = POINTS) -> Curve | None:
    """Return the curve of what a finished run recorded under `key` at its chosen learning rate, or None.

    If there are more than `points` steps, neighbouring ones are averaged.

    A seed that diverged, or that lacks a value at a step where others have one, is excluded from the mean and the band.
    It is drawn separately up to the step where it diverged, because later records are of a lane that no longer changes.
    """
    seeds = _by_seed(outcome, key)
    ends = {lane.get("seed"): number(lane.get("step")) or 0 for lane in outcome.lost_lanes()}
    seeds = {seed: _until(values, ends.get(seed)) for seed, values in seeds.items()}
    steps = np.array(sorted({step for values in seeds.values() for step in values}))
    if not len(steps):
        return None
    whole = {seed: values for seed, values in seeds.items() if len(values) == len(steps) and seed not in ends}
    cut = tuple(_points(values) for seed, values in seeds.items() if values and seed not in whole)
    table = np.array([[values[step] for values in whole.values()] for step in steps])
    return Curve(outcome.name, outcome.order, *_thin(steps, table.reshape(len(steps), -1), points), cut)


def _by_seed(outcome: Outcome, key: str) -> dict[int, dict[int, float]]:
    rate = number((outcome.result or {}).get("learning_rate"))
    seeds: dict[int, dict[int, float]] = {}
    for row in outcome.rows:
        value = number(row.get(key))
        if value is not None and (rate is None or is_rate(row["learning_rate"], rate)):
            seeds.setdefault(row["seed"], {})[row["step"]] = value
    return seeds


def _until(values: dict[int, float], end: float | None) -> dict[int, float]:
    """Return the values up to a step, or all of them if `end` is None."""
    return {step: value for step, value in values.items() if end is None or step <= end}


def _points(values: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    steps = sorted(values)
    return np.array(steps), np.array([values[step] for step in steps])


def _thin(steps: np.ndarray, values: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    size = -(-len(steps) // points)
    if size < 2:
        return steps, values
    starts = np.arange(0, len(steps), size)
    counts = np.diff(starts, append=len(steps))
    return np.add.reduceat(steps, starts) / counts, np.add.reduceat(values, starts) / counts[:, None]
