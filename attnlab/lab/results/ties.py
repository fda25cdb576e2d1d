"""Describe the choice among learning rates that share the best headline metric on validation."""

from __future__ import annotations

from typing import Any

from attnlab.console.format import measure, number, significant, title
from attnlab.lab.statistics import leaders, lowest


def tie(result: dict[str, Any]) -> str:
    """Return a sentence if several learning rates of a `result.json` share the best headline metric, else "".

    The sentence names the rates and how one was chosen: by the validation loss. The first rate is chosen in records
    without losses, or if the losses are equal too.
    """
    by_rate = [entry for entry in result.get("by_rate") or [] if isinstance(entry, dict)]
    if len(by_rate) < 2 or not result.get("metrics") or number(result.get("learning_rate")) is None:
        return ""
    values = _table(by_rate, "values")
    equal = leaders(values, bool(result["higher"])) if values and values[0] else ()
    if len(equal) < 2:
        return ""
    rates, metric = [f"{entry['learning_rate']:g}" for entry in by_rate], result["metric"]
    shared = f"{', '.join(rates[n] for n in equal[:-1])} and {rates[equal[-1]]}"
    sound = [row[equal[0]] for row in values if row[equal[0]] is not None]
    worth = (
        f"the same {title(metric)} on validation ({_mean(metric, sound)})" if sound else f"no finite {title(metric)}"
    )
    tied, chosen = f"the learning rates {shared} have {worth}", f"{result['learning_rate']:g}"
    losses = _table(by_rate, "losses")
    if not losses:
        return f"{tied}; the first of them, {chosen}, is reported, although it may not be the best"
    best = lowest(losses, equal)
    means = ", ".join(f"{rates[n]}: {_mean('loss', [row[n] for row in losses])}" for n in equal)
    if len(best) > 1:
        return f"{tied}, and the lowest loss is shared too ({means}); the first of them, {chosen}, is reported"
    return f"{tied}; {chosen} is reported because it has the lowest loss ({means})"


def _table(by_rate: list[dict], name: str) -> list[tuple[float | None, ...]]:
    """Return the finite numbers of a field, `[seeds, rates]`. Empty if the rates have different numbers of seeds."""
    columns = [entry.get(name) for entry in by_rate]
    if not all(isinstance(column, list) and len(column) == len(columns[0] or []) for column in columns):
        return []
    return list(zip(*([number(value) for value in column or []] for column in columns), strict=True))


def _mean(metric: str, values: list[float | None]) -> str:
    finite = [value for value in values if value is not None]
    if not finite:
        return "none"
    mean = sum(finite) / len(finite)
    return significant(mean, 4) if metric == "loss" else measure(metric, mean)
