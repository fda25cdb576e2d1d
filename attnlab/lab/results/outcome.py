"""Read and check the run folders of a study. Only finished runs are averaged."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from attnlab.console.format import number
from attnlab.console.metric import Metric
from attnlab.lab.results.declared import check, declared
from attnlab.lab.results.estimates import Estimate, Rate, estimate, is_rate, rates
from attnlab.lab.runs import study_file
from attnlab.lab.runs.examples import Example, examples
from attnlab.lab.runs.pictures import Picture, pictures
from attnlab.lab.runs.run_folder import FolderError, Record, RunFolder


@dataclass(frozen=True)
class Outcome:
    """The contents of one variant's folder."""

    name: str
    """The name of the variant."""
    experiment: Record
    """The contents of `experiment.json`, with what the study file says of the variant.

    See `attnlab.lab.runs.study_file`.
    """
    environment: Record
    """The contents of `environment.json`."""
    result: Record | None
    """The contents of `result.json`, or None if the run has not finished."""
    metrics: dict[str, Estimate]
    """The estimates of the metrics by name."""
    rows: list[Record]
    """The rows of `metrics.jsonl`."""
    maps: tuple[Example, ...]
    """The stored attention maps."""
    troubles: tuple[str, ...]
    """One line for each file that could not be read."""
    rates: tuple[Rate, ...] = ()
    """The estimates of each learning rate, if several were trained."""
    pictures: tuple[Picture, ...] = ()
    """The stored pictures of answers."""
    order: int = 0
    """Its position in the study, which selects its colour. By default the first is the reference of the others."""

    @property
    def begun(self) -> bool:
        """Whether the variant has a folder."""
        return bool(self.rows or self.troubles or "experiment" in self.experiment)

    @property
    def metric(self) -> str:
        """The primary metric, which the task names first. It is empty if the run has not finished."""
        return self.result["metric"] if self.result else ""

    @property
    def primary(self) -> Estimate | None:
        """The estimate of the primary metric."""
        return self.metrics.get(self.metric) if self.result else None

    @property
    def primary_metric(self) -> Metric:
        """The declaration of the primary metric. Its name is empty if the run has not finished."""
        return self.declared(self.metric)

    def declared(self, name: str) -> Metric:
        """Return the declaration of a metric. A metric that the run does not declare has no unit and no range."""
        return declared(self.result or {}, name)

    def by_seed(self, metric: str) -> dict[int, float]:
        """Return the values of a metric by seed. Empty if a value is not finite or its seed is unknown."""
        estimate = self.metrics.get(metric)
        sound = estimate is not None and estimate.sound
        return {seed: value or 0.0 for seed, value in self.values(metric).items()} if sound else {}

    def values(self, metric: str) -> dict[int, float | None]:
        """Return the values of a metric by seed, None for one that is not finite. Empty if the seeds are unknown."""
        estimate = self.metrics.get(metric)
        if self.result is None or estimate is None:
            return {}
        for seeds in (self.result["seeds"], self.alive_seeds()):
            if len(seeds) == len(estimate.values):
                return dict(zip(seeds, estimate.values, strict=True))
        return {}

    def alive_seeds(self) -> list[int]:
        """Return the seeds that did not diverge at the chosen learning rate."""
        lost = [lane.get("seed") for lane in self.lost_lanes()]
        return [seed for seed in (self.result or {}).get("seeds", []) if seed not in lost]

    def lost_lanes(self) -> list[Record]:
        """Return the lanes that diverged at the chosen learning rate."""
        if self.result is None:
            return []
        rate = number(self.result.get("learning_rate"))
        return [lane for lane in self.diverged_lanes() if rate is None or is_rate(lane.get("learning_rate"), rate)]

    def diverged_lanes(self) -> list[Record]:
        """Return all lanes that diverged."""
        return [lane for lane in (self.result or {}).get("diverged", []) if isinstance(lane, dict)]

    def metric_resolution(self) -> float | None:
        """Return how much one test example changes the primary metric. None if the number of examples is unknown."""
        examples = number((self.result or {}).get("examples"))
        return 1 / examples if examples and examples >= 1 else None

    def tried_rates(self) -> int:
        """Return the number of learning rates that may have been as good as the chosen one, at least 1."""
        contenders = (self.result or {}).get("contenders")
        return max(len(contenders), 1) if isinstance(contenders, list) else 1

    def trained_steps(self) -> float | None:
        """Return the steps of a lane at the chosen rate, averaged over seeds because lanes may stop early."""
        steps, result = number((self.result or {}).get("steps")), self.result or {}
        if steps is None:
            return None
        rate, early = number(result.get("learning_rate")), {}
        for lane in result.get("stopped") or []:
            if isinstance(lane, dict) and (rate is None or is_rate(lane.get("learning_rate"), rate)):
                early[lane.get("seed")] = number(lane.get("step"))
        each = [early.get(seed) or steps for seed in result["seeds"]]
        return math.fsum(each) / len(each) if each else steps

    def training_flops(self) -> float | None:
        """Return the floating-point operations of training one lane."""
        flops, steps = number((self.result or {}).get("flops")), self.trained_steps()
        return None if flops is None or steps is None else flops * steps

    def lanes(self) -> int | None:
        """Return the number of lanes (seeds times learning rates), or None if the configuration does not contain it."""
        train = self.experiment.get("experiment", {}).get("train")
        seeds, rates = (train.get("seeds"), train.get("learning_rate")) if isinstance(train, dict) else (0, 0)
        count = len(seeds) if isinstance(seeds, list) else number(seeds)
        return int(count) * (len(rates) if isinstance(rates, list) else 1) if count else None

    def last_step(self) -> int:
        """Return the last recorded step."""
        return max((row["step"] for row in self.rows), default=0)

    def planned_steps(self) -> int | None:
        """Return the planned number of steps, or None if the configuration does not contain it."""
        train = self.experiment.get("experiment", {}).get("train")
        steps = number(train.get("steps")) if isinstance(train, dict) else None
        return None if steps is None else int(steps)


def outcomes(folder: Path) -> list[Outcome]:
    """Read every variant of a study.

    If `study.json` lists the variants, other folders are ignored, and listed variants without a folder are returned as
    not begun.

    Args:
        folder: The folder of the study, `OUT/<experiment>`.

    Returns:
        The outcomes. Finished ones come first, grouped by primary metric and sorted from best to worst.

    Raises:
        FolderError: The folder contains no run, or its study file cannot be read.
    """
    folder = Path(folder)
    try:
        places = sorted(place for place in folder.iterdir() if _is_run(place))
    except OSError as error:
        raise FolderError(f"{folder}: {error.strerror or error}") from error
    if not places:
        raise FolderError(f"{folder} contains no run; expected the folder of a study, OUT/<experiment>")
    listed = study_file.read_study_file(folder)
    found = [
        _outcome(place, folder, listed.get(place.name, {})) for place in places if not listed or place.name in listed
    ]
    present = {place.name for place in places}
    # Variants without a folder are kept, because others may be compared with them.
    found += [Outcome(name, own, {}, None, {}, [], (), ()) for name, own in listed.items() if name not in present]
    found.sort(key=_planned)
    places = list(dict.fromkeys(outcome.metric for outcome in found))
    ordered = [replace(outcome, order=n) for n, outcome in enumerate(found)]
    return sorted(ordered, key=lambda outcome: (outcome.result is None, places.index(outcome.metric), *_rank(outcome)))


def by_metric(found: Iterable[Outcome]) -> dict[Metric, list[Outcome]]:
    """Group the outcomes by primary metric. Values of different metrics share no axis and no column.

    A group has the declaration of its first finished outcome. Unfinished outcomes have no metric. They join the others
    if these share one metric, otherwise the name of their metric is empty.
    """
    found = list(found)
    metrics: dict[str, Metric] = {}
    for outcome in found:
        if outcome.result:
            metrics.setdefault(outcome.metric, outcome.primary_metric)
    only = next(iter(metrics.values())) if len(metrics) == 1 else Metric("")
    groups: dict[Metric, list[Outcome]] = {}
    for outcome in found:
        groups.setdefault(metrics.get(outcome.metric, only), []).append(outcome)
    return groups


def is_planned(outcome: Outcome) -> bool:
    """Return whether the folder records the variant's position in the study."""
    return type(outcome.experiment.get("order")) is int


def _planned(outcome: Outcome) -> tuple[float, str]:
    """Sort key: variants in the order of the study, then those without a recorded position by name."""
    return outcome.experiment["order"] if is_planned(outcome) else math.inf, outcome.name


def _is_run(place: Path) -> bool:
    names = ("experiment", "result", "metrics")
    return not place.name.startswith(".") and any(RunFolder(place).file(name).exists() for name in names)


def _rank(outcome: Outcome) -> tuple[bool, float, str]:
    estimate = outcome.primary
    if outcome.result is None or estimate is None or estimate.mean is None:
        return True, 0.0, outcome.name
    return False, -estimate.mean if outcome.primary_metric.higher else estimate.mean, outcome.name


def _outcome(place: Path, study: Path, entry: Record) -> Outcome:
    """Read one folder. Errors become entries of `troubles`."""
    troubles: list[str] = []

    def attempt(read, otherwise):
        try:
            found = read()
        except FolderError as error:
            # The page may be passed on, so it should not contain absolute paths.
            troubles.append(str(error).replace(f"{study}{os.sep}", ""))
            return otherwise
        return otherwise if found is None else found

    run = RunFolder(place)
    own = attempt(lambda: run.read("experiment"), {})
    # The study file takes precedence, except for the comparable part: the folder knows what it was trained on.
    experiment = own | entry | {name: own[name] for name in ("comparable_part",) if name in own}
    if not run.file("experiment").exists():
        # Without experiment.json the other files cannot be attributed to this variant.
        return Outcome(place.name, entry, {}, None, {}, [], (), (f"{place.name}{os.sep}experiment.json is missing",))
    if own.get("variant", place.name) != place.name:
        trouble = f"{place.name}{os.sep}experiment.json belongs to variant {own['variant']!r}, so the run is ignored"
        return Outcome(place.name, entry, {}, None, {}, [], (), (trouble,))
    environment = attempt(lambda: run.read("environment"), {})
    result, metrics, by_rate = attempt(lambda: _result(run), (None, {}, ()))
    rows = attempt(lambda: _rows(run, result), [])
    maps, drawn = attempt(lambda: examples(run), ()), attempt(lambda: pictures(run), ())
    return Outcome(place.name, experiment, environment, result, metrics, rows, maps, tuple(troubles), by_rate, drawn)


def _rows(run: RunFolder, result: Record | None) -> list[Record]:
    """Read the rows of `metrics.jsonl` and check them against the result."""
    rows, steps = run.metrics(), number((result or {}).get("steps"))
    last = rows[-1]["step"] if rows else 0
    if steps is not None and last != steps:
        raise FolderError(
            f"{run.file('metrics')}: rows are missing: the last row is from step {last}, the result from step {steps:g}"
        )
    lanes = sum(row["step"] == rows[0]["step"] for row in rows) if rows else 1
    if steps is None:
        # The run was interrupted while it wrote the rows of a step. It will continue from its checkpoint.
        return rows[: len(rows) - len(rows) % lanes]
    if len(rows) % lanes:
        raise FolderError(f"{run.file('metrics')}: rows are missing: step {last} has fewer rows than there are lanes")
    return rows


def _result(run: RunFolder) -> tuple[Record, dict[str, Estimate], tuple[Rate, ...]] | None:
    """Read `result.json`, and return it with its estimates."""
    result = run.read("result")
    if result is None:
        return None
    if not all(type(seed) is int for seed in result["seeds"]):
        raise FolderError(f"{run.file('result')}: the field 'seeds' must be a list of integers")
    try:
        check(result)
    except ValueError as error:
        raise FolderError(f"{run.file('result')}: declared: {error}") from error
    where = f"{run.file('result')}: metrics"
    metrics = {name: estimate(entry, f"{where}.{name}") for name, entry in result["metrics"].items()}
    lost = [lane.get("learning_rate") for lane in result["diverged"] if isinstance(lane, dict)]
    return result, metrics, rates(result.get("by_rate") or [], lost, f"{run.file('result')}: by_rate")
