"""The costs of the variants of a study, counted without running anything."""

from __future__ import annotations

from typing import Any

from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.matching import Matched, matched
from attnlab.lab.study.study import Study


def describe(study: Study, found: Matched | None = None) -> list[dict[str, Any]]:
    """Return the costs of each variant after matching.

    Args:
        study: the study.
        found: the result of `matched`. None calls it.

    Returns:
        For each variant {"variant", "parameters", "flops", "state_bytes", "memory", "lanes", "steps", "training"}.
        "flops" is per training step of one lane, "memory" is the bytes of the training state of all lanes, and
        "training" is the FLOPs of all lanes and steps.

    Raises:
        ValueError: if a match cannot be met, or a model needs 64-bit numbers that jax does not have enabled.
        DataError: if data are not available.
    """
    found = matched(study, Ledger()) if found is None else found
    rows = []
    for name, experiment in found.experiments.items():
        row, train = found.ledger.costs(experiment), experiment.train
        lanes = len(train.lanes)
        plan = {"lanes": lanes, "steps": train.steps, "training": lanes * train.steps * row["flops"]}
        rows.append({"variant": name, **row, **plan})
    return rows
