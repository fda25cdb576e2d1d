"""Describe lanes that `train.patience` stopped before their primary metric had changed at all."""

from __future__ import annotations

from collections.abc import Iterable

from attnlab.lab.results.declared import declared
from attnlab.lab.runs.run_folder import Record


def stalled(result: Record, rows: Iterable[Record], patience: int) -> list[str]:
    """Return a line for each lane that stopped after `patience` evaluations with the same value.

    A metric that is at its worst until much is learned, for example exact match or BLEU, shows no gain while the loss
    falls.

    Args:
        result: The contents of `result.json`.
        rows: The rows of `metrics.jsonl`.
        patience: `train.patience`. 0 returns no lines.
    """
    if not patience:
        return []
    metric, lines, kept = (
        declared(result, result["metric"]),
        [],
        [row for row in rows if f"valid.{result['metric']}" in row],
    )
    for lane in result.get("stopped") or []:
        mine = [row for row in kept if (row["seed"], row["learning_rate"]) == (lane["seed"], lane["learning_rate"])]
        values = [row[f"valid.{metric.name}"] for row in mine if row["step"] <= lane["step"]]
        # A lane with fewer evaluations can only have been stopped by train.target.
        if len(values) > patience and len({*values}) == 1:
            lines.append(
                f"seed {lane['seed']} at learning rate {lane['learning_rate']:g} was stopped at step {lane['step']:,} "
                f"by train.patience={patience}, but its {metric.title} on validation was {metric.format(values[0])} "
                "at every evaluation; raise train.patience if the loss was still falling"
            )
    return lines
