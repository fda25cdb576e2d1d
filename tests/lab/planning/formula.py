"""A ledger that computes costs by a formula, so that a test knows them, and a study of softmax and linear attention."""

from dataclasses import dataclass, field
from typing import Any

from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.study.study import Experiment, Study, change
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Linear, Softmax
from tests.small import EXPERIMENT

BASE = change(EXPERIMENT, **{"model.width": 32, "model.feedforward": 64})


@dataclass(frozen=True)
class Formula(Ledger):
    """A ledger that computes FLOPs by a formula and records the experiments it is asked for in `asked`.

    The projections and mixing of linear attention cost `dearer` times as much as those of softmax attention.
    """

    dearer: float = 1.0
    power: float = 2.0
    asked: list[Experiment] = field(default_factory=list)

    def flops(self, experiment):
        """Returns the FLOPs of the projections, the mixing and the feed-forward layer."""
        model = experiment.model
        if experiment not in self.asked:
            self.asked.append(experiment)
        mixed = 1e5 * model.width**self.power * (self.dearer if isinstance(model.mechanism, Linear) else 1.0)
        return int(mixed + 1e5 * model.width * (1 + 2 * (model.feedforward or 4 * model.width)))


def two(match: Any = None, budget: Any = "steps", **changes):
    """Returns a study that compares softmax with linear attention."""
    vary = over("model.mechanism", softmax=Softmax(), linear=Linear())
    return Study(change(BASE, **changes), vary, match=match, budget=budget)


def off(cost, target):
    """Returns the relative error of a cost, |cost − target| / target."""
    return abs(cost - target) / target
