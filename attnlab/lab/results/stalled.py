"""Lanes that patience stopped before their headline metric had moved at all: what is said of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attnlab.console.format import measure, title


def stalled(result: dict[str, Any], rows: Iterable[dict[str, Any]], patience: int) -> list[str]:
    """A line for each lane of a `result.json` that stopped after `patience` evaluations that all gave one value.

    `rows` are those of `metrics.jsonl`. A metric that is at its worst until much is learned, as exact match and BLEU
    are, shows no gain while the loss falls.
    """
    if not patience:
        return []
    metric, lines, kept = result["metric"], [], [row for row in rows if f"valid.{result['metric']}" in row]
    for lane in result.get("stopped") or []:
        mine = [row for row in kept if (row["seed"], row["learning_rate"]) == (lane["seed"], lane["learning_rate"])]
        values = [row[f"valid.{metric}"] for row in mine if row["step"] <= lane["step"]]
        # Fewer evaluations than that end by train.target alone.
        if len(values) > patience and len({*values}) == 1:
            lines.append(
                f"seed {lane['seed']} at learning rate {lane['learning_rate']:g} was stopped in step {lane['step']:,} "
                f"by train.patience={patience}, and its {title(metric)} on validation had been "
                f"{measure(metric, values[0])} from the first evaluation on: raise train.patience if the loss fell"
            )
    return lines
