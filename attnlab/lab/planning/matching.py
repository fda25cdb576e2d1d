"""Match variants: equal model cost by solving for widths, and equal training cost by solving for steps.

All costs but seconds are counted from traces. Nothing is compiled or run, and the same study has the same solution each
time. Seconds are measured once and kept (`attnlab.lab.planning.step_time`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from attnlab.console.format import count, large, off
from attnlab.lab.planning.budget import TOLERANCE, budget
from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.model_sizes import ATTEMPTS, growth_exponent, inner_width, multiples_around, size, sizes, unit
from attnlab.lab.study.experiment import Experiment
from attnlab.lab.study.study import Study, change, check_twins

TRIES = 8  # widths that are traced for one variant, at most
# The methods of a ledger that count a cost, with its name and its format for display.
MEASURES: dict[str, tuple[str, Callable[[int], str]]] = {
    "parameters": ("parameters", count),
    "flops": ("FLOPs per step", lambda number: large(number, "FLOP")),
    "state": ("decoding state", lambda number: f"{count(number)} B"),
}


@dataclass(frozen=True)
class Matched:
    """The experiments of a study after matching, as they will run."""

    experiments: dict[str, Experiment]
    """The experiments, by variant."""
    lines: list[str]
    """Lines that report what was changed."""
    ledger: Ledger
    """The ledger that holds the counted costs."""


def matched(study: Study, ledger: Ledger, quick: bool = False) -> Matched:
    """Solve `study.match` and `study.budget`.

    Match. First the model's width is solved for, among the widths that heads, position and mechanism allow, unless the
    cost is already within 2% of the base. Then the feed-forward width, any whole number, is solved for to come as near
    as possible, except for "state", which does not depend on it. A width that a variant sets itself stays unchanged. A
    model that a variant sets as a whole is adjusted.

    Budget. Each variant gets the number of steps for which steps × cost of a step equals that of the base. Warm-up and
    the steps between evaluations and between checkpoints scale in proportion. The latter two are rounded up, so that
    there are never more of them than in the base. The learning rate schedule spans all steps.

    With neither, the experiments are returned unchanged and no data are loaded.

    Args:
        study: the study.
        ledger: counts the costs. With `budget="seconds"` and a ledger without a clock, steps are left unchanged.
        quick: whether to solve for the preview of the study.

    Returns:
        The experiments, with lines that report the changes.

    Raises:
        ValueError: if a variant stays more than 2% away from the base. The message says how near it came. Also if two
            variants have become the same experiment, if a model has no width to solve for or no decoding state, or if
            a model needs 64-bit numbers that jax does not have enabled.
        DataError: if data are not available.
    """
    variants = study.variants(quick)
    if study.match is None and study.budget == "steps":
        return Matched(variants, [], ledger)
    base = change(study.base, **(study.preview if quick else {}))
    own = study.vary.variants if study.vary else {"base": {}}
    changes: dict[str, list[str]] = {name: [] for name in variants}
    lines: list[str] = []
    if study.match is not None:
        match = _Match(study.match, base, ledger)
        lines += [f"matched to {_called(study, base, quick)}: {match.describe(match.target)}{match.length}"]
        for name, before in variants.items():
            variants[name] = match.solve(name, before, frozenset(own[name]))
            changes[name] += match.changed(before, variants[name])
    if study.budget == "seconds" and ledger.clock is None:
        seconds = f"trained for the seconds of {_called(study, base, quick)}"
        lines += [f"{seconds}: the number of steps is measured when the study runs"]
    elif study.budget != "steps":
        spent = budget(study.budget, base, ledger)
        lanes = "per lane" if study.budget == "flops" else "for all lanes together"
        spender = _called(study, base, quick)
        lines += [f"trained for the {spent.unit} of {spender}: {spent.format_cost(spent.total)} {lanes}"]
        for name, before in variants.items():
            variants[name] = spent.spend(name, before, frozenset(own[name]), coarse=quick)
            changes[name] += spent.changed(before, variants[name])
    if not quick:
        solved = f"match={study.match!r}" if study.match else f"budget={study.budget!r}"
        check_twins(variants, f"{solved}: after solving, ")
    wide = max(map(len, changes))
    lines += [f"  {name:<{wide}}  {', '.join(parts)}" for name, parts in changes.items() if parts]
    return Matched(variants, lines, ledger)


def _called(study: Study, base: Experiment, quick: bool) -> str:
    """Describe the base of a study by the variant that equals it, or else by the class of its model."""
    every = (study.part_of or study).variants(quick) | study.variants(quick)
    variants = {name: (each.task, each.model) for name, each in every.items()}
    same = [name for name, both in variants.items() if both == (base.task, base.model)]
    if same:
        return f"{same[0]}, the base of the study"
    return f"the base of the study, a {type(base.model).__name__} that is not one of its variants"


class _Match:
    """The search for the widths at which experiments have the same cost as a base experiment."""

    def __init__(self, match: str, base: Experiment, ledger: Ledger):
        self.match, self.base, self.ledger = match, base, ledger
        self.count: Callable[[Experiment], int | None] = getattr(ledger, match)
        self.name, self.format_cost = MEASURES[match]
        self.target = self.cost("the base", base)

    @property
    def length(self) -> str:
        """A phrase with the number of tokens that the cost is for, or an empty text if it does not depend on length."""
        if self.match != "state":
            return ""
        shape = self.ledger.problem(self.base).shape
        sides = [getattr(shape, side, None) for side in ("length", "source_length", "target_length")]
        return f" for an example of {' + '.join(str(side) for side in sides if side is not None)} tokens"

    def describe(self, cost: int) -> str:
        """Return a cost in words."""
        return f"{self.name} {self.format_cost(cost)}"

    def cost(self, name: str, experiment: Experiment) -> int:
        """Return the cost of an experiment. Raises ValueError for a model without a decoding state."""
        found = self.count(experiment)
        if not found:
            raise ValueError(
                f"match={self.match!r}: the {type(experiment.model).__name__} of {name} has no {self.name}"
            )
        return found

    def solve(self, name: str, experiment: Experiment, own: frozenset[str]) -> Experiment:
        """Return the experiment at the widths whose cost is nearest the target.

        Args:
            name: the name of the variant, for messages.
            experiment: the variant.
            own: the fields that the variant sets itself. They stay unchanged.

        Raises:
            ValueError: if the model has neither width nor feedforward, or the cost stays more than 2% away.
        """
        fields = sizes(experiment.model)
        if not fields:
            model = type(experiment.model).__name__
            raise ValueError(f"match={self.match!r}: the {model} of {name} has neither width nor feedforward")
        before = self.cost(name, experiment)
        # feedforward=0 means a model of attention only, and must stay 0.
        free = [field for field in fields if f"model.{field}" not in own and getattr(experiment.model, field) != 0]
        found = experiment
        if "width" in free and not self.near(before):
            found = self._widened(found)
        if "feedforward" in free and self.match != "state":
            found = self._filled(found)
            # The feed-forward width is at its minimum and the cost still too high, so the width must shrink.
            while "width" in free and found.model.feedforward == 1 and self.cost(name, found) > self.target:
                if (narrower := self._beside(found, experiment, -1)) is None:
                    break
                found = self._filled(narrower)
        elif "width" in free:
            found = self._settled(found)
        if not self.near(cost := self.cost(name, found)):
            widths = ", ".join(f"model.{field}={getattr(found.model, field)}" for field in fields)
            raise ValueError(
                f"match={self.match!r}: {name} cannot be matched: the nearest is {self.describe(cost)} at {widths}, "
                f"the base has {self.format_cost(self.target)} ({off(cost, self.target)}, at most 2% is allowed)"
            )
        return found

    def near(self, cost: int) -> bool:
        """Return whether a cost is within the tolerance of the target."""
        return abs(cost - self.target) <= TOLERANCE * self.target

    def changed(self, before: Experiment, after: Experiment) -> list[str]:
        """Return what was changed, in words."""
        changes = []
        for field, words in (("width", "width"), ("feedforward", "feed-forward")):
            old, new = size(before.model, field), size(after.model, field)
            if old != new:
                changes.append(f"{words} {inner_width(before.model) if old is None else old} → {new}")
        old, new = self.count(before), self.count(after)
        costs = (
            self.describe(new or 0)
            if old == new
            else f"{self.name} {self.format_cost(old or 0)} → {self.format_cost(new or 0)}"
        )
        return [*(changes or ["unchanged"]), f"{costs} ({off(new or 0, self.target)})"]

    def _widened(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the width whose cost is nearest the target.

        The cost is modelled as a power of the width. The exponent is first that of the base, then that of the last two
        widths, so that few traces suffice.
        """
        here, power = experiment.model.width, self._growth
        seen = {here: (self.cost("", experiment), experiment)}
        while len(seen) < TRIES:
            guess = here * (self.target / seen[here][0]) ** (1 / power)
            there, cost, wider = next(self._priced(experiment, guess, seen), (here, 0, experiment))
            if there in seen:
                break
            seen[there] = cost, wider
            if cost == seen[here][0]:
                break
            power = growth_exponent(there / here, cost / seen[here][0])
            here = there
        return min(seen.values(), key=lambda found: self._far(found[0]))[1]

    def _settled(self, experiment: Experiment) -> Experiment:
        """Step to neighbouring widths until the nearest is found, so that a refusal reports the true optimum."""
        cost = self.cost("", experiment)
        while not self.near(cost):
            beside = self._beside(experiment, experiment, 1 if cost < self.target else -1)
            if beside is None or self._far(further := self.cost("", beside)) >= self._far(cost):
                break
            experiment, cost = beside, further
        return experiment

    def _far(self, cost: int) -> float:
        return abs(math.log(cost / self.target))

    def _beside(self, experiment: Experiment, before: Experiment, side: int) -> Experiment | None:
        """Return `before` at the next allowed width above (`side` 1) or below (-1) that of `experiment`, or None."""
        width, step = experiment.model.width, unit(before.model)
        for n in range(1, ATTEMPTS):
            with suppress(ValueError, NotImplementedError):
                if width + side * n * step < 1:
                    return None
                beside = change(before, **{"model.width": width + side * n * step})
                self.cost("", beside)
                return beside
        return None

    def _priced(self, experiment: Experiment, guess: float, seen: dict) -> Iterator[tuple[int, int, Experiment]]:
        """Yield (width, cost, experiment) for allowed widths around a guess, nearest first."""
        tried = 0
        for width in multiples_around(guess, unit(experiment.model)):
            if width in seen:
                yield width, *seen[width]
                continue
            # A width that the constructor accepts can still be refused when the mechanism creates its arrays.
            with suppress(ValueError, NotImplementedError):
                wider = change(experiment, **{"model.width": width})
                if (tried := tried + 1) > TRIES:
                    return
                yield width, self.cost("", wider), wider

    def _filled(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the feed-forward width of cost nearest the target. The cost is linear in it."""
        here = inner_width(experiment.model)
        seen = {here: (self.cost("", experiment), experiment)}
        slope = self._rise * (size(experiment.model, "width") or 1)
        while len(seen) < TRIES:
            there = max(1, round(here + (self.target - seen[here][0]) / slope))
            if there in seen:
                break
            filled = change(experiment, **{"model.feedforward": there})
            seen[there] = self.cost("", filled), filled
            slope = (seen[there][0] - seen[here][0]) / (there - here)
            here = there
            if slope <= 0:
                break
        return min(seen.values(), key=lambda found: abs(found[0] - self.target))[1]

    @cached_property
    def _growth(self) -> float:
        """The exponent of the width in the cost of the base. It does not depend on which variants there are."""
        if (width := size(self.base.model, "width")) is None:
            return 1.5
        seen = {width: (self.target, self.base)}
        there, cost, _ = next(self._priced(self.base, 1.25 * width + 0.5, seen), (width, 0, self.base))
        return 1.5 if there == width else growth_exponent(there / width, cost / self.target)

    @cached_property
    def _rise(self) -> float:
        """The cost of one more hidden unit per unit of width in the base, a first estimate for every variant."""
        start = 4.0  # any positive start will do, because the second step measures the slope
        if "feedforward" not in sizes(self.base.model) or size(self.base.model, "feedforward") == 0:
            return start
        inner = inner_width(self.base.model)
        rise = self.cost("the base", change(self.base, **{"model.feedforward": 2 * inner})) - self.target
        return rise / inner / (size(self.base.model, "width") or 1) or start
