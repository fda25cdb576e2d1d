"""What the run folders of a study say: read whole, checked, and nothing averaged that is not finished."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.lab.folder import FolderError, RunFolder
from attnlab.lab.quantity import number


@dataclass(frozen=True)
class Estimate:
    """A metric over seeds, as `result.json` holds it. A value of None is one that was not finite."""

    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float | None, ...]

    @property
    def sound(self) -> bool:
        """Whether there is a mean, and every seed is in it."""
        return self.mean is not None and None not in self.values


@dataclass(frozen=True)
class Outcome:
    """One variant's folder. `troubles` says in a line each what could not be read.

    `result` is None for a run that has not finished; `metrics` are its estimates by name.
    """

    name: str
    experiment: dict[str, Any]
    environment: dict[str, Any]
    result: dict[str, Any] | None
    metrics: dict[str, Estimate]
    rows: list[dict[str, Any]]
    maps: dict[str, Any] | None
    troubles: tuple[str, ...]
    order: int = 0  # its place in the order of names, which its colour goes by

    @property
    def headline(self) -> Estimate | None:
        """The estimate of the metric that the task names first."""
        return self.metrics.get(self.result["metric"]) if self.result else None

    def by_seed(self, metric: str) -> dict[int, float]:
        """The values by seed; empty where it is not known which value is whose, or one is not finite."""
        estimate = self.metrics.get(metric)
        if self.result is None or estimate is None or not estimate.sound:
            return {}
        lost = [entry.get("seed") for entry in self.lost()]
        for seeds in (self.result["seeds"], [s for s in self.result["seeds"] if s not in lost]):
            if len(seeds) == len(estimate.values):
                return dict(zip(seeds, (value or 0.0 for value in estimate.values), strict=True))
        return {}

    def lost(self) -> list[dict[str, Any]]:
        """The lanes that diverged at the learning rate that was chosen."""
        if self.result is None:
            return []
        rate = number(self.result.get("learning_rate"))
        return [lane for lane in self.diverged() if rate is None or is_rate(lane.get("learning_rate"), rate)]

    def diverged(self) -> list[dict[str, Any]]:
        """All lanes that diverged."""
        return [lane for lane in (self.result or {}).get("diverged", []) if isinstance(lane, dict)]

    def lanes(self) -> int | None:
        """How many lanes the run has, seeds times learning rates, where its configuration says so."""
        train = self.experiment.get("experiment", {}).get("train")
        seeds, rates = (train.get("seeds"), train.get("learning_rate")) if isinstance(train, dict) else (0, 0)
        count = len(seeds) if isinstance(seeds, list) else number(seeds)
        return int(count) * (len(rates) if isinstance(rates, list) else 1) if count else None

    def last_step(self) -> int:
        """The last step that was recorded."""
        return max((row["step"] for row in self.rows), default=0)

    def planned_steps(self) -> int | None:
        """How many steps the run was to make, where its configuration says so."""
        train = self.experiment.get("experiment", {}).get("train")
        steps = number(train.get("steps")) if isinstance(train, dict) else None
        return None if steps is None else int(steps)


def is_rate(value: Any, rate: float) -> bool:
    """Whether a learning rate read from a file is the one meant."""
    value = number(value)
    return value is not None and math.isclose(value, rate, rel_tol=1e-9)


def outcomes(folder: Path) -> list[Outcome]:
    """Every variant in the folder of a study: finished ones first, the best by its headline metric leading.

    Raises FolderError where there is no run in it.
    """
    folder = Path(folder)
    try:
        places = sorted(place for place in folder.iterdir() if _is_run(place))
    except OSError as error:
        raise FolderError(f"{folder}: {error.strerror or error}") from error
    if not places:
        raise FolderError(f"{folder}: no run in this folder; the page is made from OUT/<experiment>")
    return sorted((_outcome(place, folder, n) for n, place in enumerate(places)), key=_rank)


def _is_run(place: Path) -> bool:
    names = ("experiment", "result", "metrics")
    return not place.name.startswith(".") and any(RunFolder(place).file(name).exists() for name in names)


def _rank(outcome: Outcome) -> tuple[int, float, str]:
    if outcome.result is None:
        return 2, 0.0, outcome.name
    estimate = outcome.headline
    if estimate is None or estimate.mean is None:
        return 1, 0.0, outcome.name
    return 0, -estimate.mean if outcome.result["higher"] else estimate.mean, outcome.name


def _outcome(place: Path, study: Path, order: int) -> Outcome:
    troubles: list[str] = []

    def attempt(read, otherwise):
        try:
            found = read()
        except FolderError as error:
            # Where the study stands on this machine is nothing for a page that is passed on.
            troubles.append(str(error).replace(f"{study}{os.sep}", ""))
            return otherwise
        return otherwise if found is None else found

    run = RunFolder(place)
    experiment = attempt(lambda: run.read("experiment"), {})
    if not run.file("experiment").exists():
        troubles.append(f"{place.name}{os.sep}experiment.json: is missing")
    environment = attempt(lambda: run.read("environment"), {})
    result, metrics = attempt(lambda: _result(run), (None, {}))
    rows = attempt(run.metrics, [])
    maps = attempt(lambda: _maps(run), None)
    return Outcome(place.name, experiment, environment, result, metrics, rows, maps, tuple(troubles), order)


def _result(run: RunFolder) -> tuple[dict[str, Any], dict[str, Estimate]] | None:
    result = run.read("result")
    if result is None:
        return None
    if not all(type(seed) is int for seed in result["seeds"]):
        raise FolderError(f"{run.file('result')}: the field 'seeds' must list whole numbers")
    where = f"{run.file('result')}: metrics"
    return result, {name: _estimate(entry, f"{where}.{name}") for name, entry in result["metrics"].items()}


def _estimate(entry: Any, where: str) -> Estimate:
    values = entry.get("values") if isinstance(entry, dict) else None
    if not isinstance(values, list):
        raise FolderError(f"{where}: must hold mean, low, high and values")
    mean, low, high = (number(entry.get(name)) for name in ("mean", "low", "high"))
    return Estimate(mean, low, high, tuple(number(value) for value in values))


def _maps(run: RunFolder) -> dict[str, Any] | None:
    """The maps, with their layers as one array [L H T S]; null weights as 0."""
    maps = run.read("maps")
    if maps is None:
        return None
    try:
        layers = np.nan_to_num(np.array(maps["layers"], np.float64))
    except (ValueError, TypeError, RecursionError) as error:
        raise FolderError(f"{run.file('maps')}: layers must be numbers [L H T S]") from error
    shape = len(maps["target"]), len(maps["source"])
    if layers.ndim != 4 or layers.shape[2:] != shape or 0 in layers.shape:
        raise FolderError(f"{run.file('maps')}: layers are {list(layers.shape)}, not [L, H, {shape[0]}, {shape[1]}]")
    return {**maps, "layers": layers}
