"""Training budgets in FLOPs or seconds: the number of steps of each variant, and what scales with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from attnlab.console.format import count, duration, large, off
from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.study.study import Experiment, change

TRIES = 8  # numbers of steps that are tried, at most
TOLERANCE = 0.02  # the allowed relative difference of a variant's cost from the base's
# The fields of Train that are counted in steps and scale with a budget, with their names for display.
STEPS = {"warmup": "warm-up", "evaluate_every": "evaluation every", "save_every": "saving every"}


@dataclass(frozen=True)
class Budget:
    """What a variant may spend on training. FLOPs count per lane, seconds count for all lanes together."""

    name: str
    """The kind of the budget, "flops" or "seconds"."""
    total: float
    """The amount that the base spends."""
    price: Callable[[Experiment], float]
    """A function that returns the cost of one step of an experiment."""

    def spend(self, name: str, experiment: Experiment, own: frozenset[str], coarse: bool) -> Experiment:
        """Return the experiment with the number of steps that spends the budget.

        Args:
            name: the name of the variant, for messages.
            experiment: the variant.
            own: the fields that the variant sets itself. They are not scaled.
            coarse: whether to accept the nearest number of steps, however far its cost is from the budget.

        Raises:
            ValueError: if the cost stays more than 2% away from the budget, unless `coarse`.
        """
        spent, each = experiment, self.price(experiment)
        for _ in range(TRIES):
            before, cost = spent.train.steps, self.cost(spent)
            steps = max(1, round(before + (self.total - cost) / each))
            if steps == before:
                break
            spent = _scaled(experiment, steps, own)
            # With pretraining steps of another cost, one more step does not cost the mean, so use the slope.
            each = (self.cost(spent) - cost) / (steps - before)
        cost = self.cost(spent)
        if not coarse and abs(cost - self.total) > TOLERANCE * self.total:
            raise ValueError(
                f"budget={self.name!r}: {name} cannot meet the budget: the nearest is {self.format_cost(cost)} at "
                f"train.steps={spent.train.steps}, the base has {self.format_cost(self.total)} "
                f"({off(cost, self.total)}, at most 2% is allowed)"
            )
        return spent

    def cost(self, experiment: Experiment) -> float:
        """Return the cost of all steps of an experiment: FLOPs of one lane, or seconds of all lanes together."""
        return experiment.train.steps * self.price(experiment)

    def changed(self, before: Experiment, after: Experiment) -> list[str]:
        """Return what was changed, in words."""
        old, new = before.train, after.train
        far = off(self.cost(after), self.total)
        changes = [f"steps {count(new.steps)} ({far})"]
        if old.steps != new.steps:
            changes = [f"steps {count(old.steps)} → {count(new.steps)} ({far})"]
        pairs = {words: (getattr(old, field), getattr(new, field)) for field, words in STEPS.items()}
        return changes + [f"{words} {was} → {now}" for words, (was, now) in pairs.items() if was != now]

    @property
    def unit(self) -> str:
        """The unit of the budget, for display."""
        return "FLOPs" if self.name == "flops" else "seconds"

    def format_cost(self, price: float) -> str:
        """Format a cost of `price` FLOPs or seconds for display."""
        return large(price, "FLOP") if self.name == "flops" else duration(price)


def budget(name: str, base: Experiment, ledger: Ledger) -> Budget:
    """Return the budget that the base spends.

    Args:
        name: "flops", which are counted for one lane, or "seconds", which are measured on this machine for all lanes.
        base: the base experiment.
        ledger: counts or measures the cost of a step.
    """
    price = ledger.flops if name == "flops" else ledger.seconds
    return Budget(name, base.train.steps * price(base), price)


def _scaled(experiment: Experiment, steps: int, own: frozenset[str]) -> Experiment:
    """Return the experiment with that many steps, and with warm-up and intervals scaled unless in `own`."""
    train = experiment.train
    share = steps / train.steps
    scaled = {
        "train.warmup": round(share * train.warmup),
        "train.evaluate_every": math.ceil(share * train.evaluate_every),
        "train.save_every": math.ceil(share * train.save_every),
    }
    return change(experiment, **{"train.steps": steps} | {at: n for at, n in scaled.items() if at not in own})
