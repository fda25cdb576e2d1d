"""Training for equal FLOPs: the steps that a variant may make, and what is told in steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attnlab.lab.describe import Ledger
from attnlab.lab.quantity import count, large, off
from attnlab.lab.study import Experiment, change

TOLERANCE = 0.02  # how far a variant's cost may be from the base's
# What is told in steps: a budget scales them together.
STEPS = {"warmup": "warm-up", "evaluate_every": "evaluation every", "save_every": "saving every"}


@dataclass(frozen=True)
class Budget:
    """The FLOPs that each lane may spend."""

    flops: int
    ledger: Ledger

    def spend(self, name: str, experiment: Experiment, own: frozenset[str], coarse: bool) -> Experiment:
        """With the steps that spend them; `coarse`: however many steps are nearest. What it sets itself stays."""
        each, train = self.ledger.flops(experiment), experiment.train
        steps = max(1, round(self.flops / each))
        if not coarse and abs(steps * each - self.flops) > TOLERANCE * self.flops:
            raise ValueError(
                f"budget='flops': {name} comes no nearer than {large(steps * each, 'FLOP')}, the base has "
                f"{large(self.flops, 'FLOP')} ({off(steps * each, self.flops)}, allowed are 2%), "
                f"at train.steps={steps}"
            )
        share = steps / train.steps
        scaled = {
            "train.warmup": round(share * train.warmup),
            "train.evaluate_every": math.ceil(share * train.evaluate_every),
            "train.save_every": math.ceil(share * train.save_every),
        }
        return change(experiment, **{"train.steps": steps} | {at: n for at, n in scaled.items() if at not in own})

    def changed(self, before: Experiment, after: Experiment) -> list[str]:
        """What was changed, in words."""
        old, new = before.train, after.train
        far = off(new.steps * self.ledger.flops(after), self.flops)
        said = [f"steps {count(new.steps)} ({far})"]
        if old.steps != new.steps:
            said = [f"steps {count(old.steps)} → {count(new.steps)} ({far})"]
        pairs = {words: (getattr(old, field), getattr(new, field)) for field, words in STEPS.items()}
        return said + [f"{words} {was} → {now}" for words, (was, now) in pairs.items() if was != now]
