"""What the variants of a study would cost; nothing runs."""

from __future__ import annotations

from typing import Any

from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.matching import Matched, matched
from attnlab.lab.study.study import Study


def describe(study: Study, found: Matched | None = None) -> list[dict[str, Any]]:
    """For each variant, as matched: parameters, FLOPs of a training step of one lane, decoding state, memory of
    training's state; its lanes, their steps, and the FLOPs of them all.

    `found` is what `matched` answered; None: it is asked. Raises what loading the data raises, and ValueError for
    numbers that jax is not set to compute in and for a match that cannot be met.
    """
    found = matched(study, Ledger()) if found is None else found
    for experiment in found.experiments.values():
        found.ledger.expect(experiment)
    rows = []
    for name, experiment in found.experiments.items():
        row, train = found.ledger.costs(experiment), experiment.train
        lanes = len(train.lanes)
        plan = {"lanes": lanes, "steps": train.steps, "training": lanes * train.steps * row["flops"]}
        rows.append({"variant": name} | row | plan)
    return rows
