"""Training for an equal price, FLOPs or seconds: the steps that a variant may make, and what is told in steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from attnlab.console.format import count, duration, large, off
from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.study.study import Experiment, change

TRIES = 8  # numbers of steps that are priced
TOLERANCE = 0.02  # how far a variant's cost may be from the base's
# What is told in steps: a budget scales them together.
STEPS = {"warmup": "warm-up", "evaluate_every": "evaluation every", "save_every": "saving every"}


@dataclass(frozen=True)
class Budget:
    """What each lane may spend (of seconds all lanes together): `total`, of which a step costs `price(experiment)`."""

    name: str
    total: float
    price: Callable[[Experiment], float]

    def spend(self, name: str, experiment: Experiment, own: frozenset[str], coarse: bool) -> Experiment:
        """With the steps that spend it; `coarse`: however many steps are nearest. What it sets itself stays."""
        spent, each = experiment, self.price(experiment)
        for _ in range(TRIES):
            before, cost = spent.train.steps, self.cost(spent)
            steps = max(1, round(before + (self.total - cost) / each))
            if steps == before:
                break
            spent = _scaled(experiment, steps, own)
            # Where the first steps are of another kind, one more costs other than the mean.
            each = (self.cost(spent) - cost) / (steps - before)
        cost = self.cost(spent)
        if not coarse and abs(cost - self.total) > TOLERANCE * self.total:
            raise ValueError(
                f"budget={self.name!r}: {name} comes no nearer than {self.write(cost)}, the base has "
                f"{self.write(self.total)} ({off(cost, self.total)}, allowed are 2%), "
                f"at train.steps={spent.train.steps}"
            )
        return spent

    def cost(self, experiment: Experiment) -> float:
        """What all its steps cost a lane; of seconds, all lanes together."""
        return experiment.train.steps * self.price(experiment)

    def changed(self, before: Experiment, after: Experiment) -> list[str]:
        """What was changed, in words."""
        old, new = before.train, after.train
        far = off(self.cost(after), self.total)
        said = [f"steps {count(new.steps)} ({far})"]
        if old.steps != new.steps:
            said = [f"steps {count(old.steps)} → {count(new.steps)} ({far})"]
        pairs = {words: (getattr(old, field), getattr(new, field)) for field, words in STEPS.items()}
        return said + [f"{words} {was} → {now}" for words, (was, now) in pairs.items() if was != now]

    @property
    def words(self) -> str:
        """What it is counted in."""
        return "FLOPs" if self.name == "flops" else "seconds"

    def write(self, price: float) -> str:
        """A price in words."""
        return large(price, "FLOP") if self.name == "flops" else duration(price)


def budget(name: str, base: Experiment, ledger: Ledger) -> Budget:
    """What the base spends on a lane: "flops" as counted, "seconds" as this machine needs for steps of all lanes."""
    price = ledger.flops if name == "flops" else ledger.seconds
    return Budget(name, base.train.steps * price(base), price)


def _scaled(experiment: Experiment, steps: int, own: frozenset[str]) -> Experiment:
    """With so many steps, and what is told in steps in proportion."""
    train = experiment.train
    share = steps / train.steps
    scaled = {
        "train.warmup": round(share * train.warmup),
        "train.evaluate_every": math.ceil(share * train.evaluate_every),
        "train.save_every": math.ceil(share * train.save_every),
    }
    return change(experiment, **{"train.steps": steps} | {at: n for at, n in scaled.items() if at not in own})
