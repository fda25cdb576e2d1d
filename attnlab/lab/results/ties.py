"""Describe the choice among learning rates that share the best primary metric on validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attnlab.console.format import number, significant
from attnlab.lab.results.declared import declared
from attnlab.lab.runs.run_folder import Record
from attnlab.lab.statistics import leaders, lowest


def tie(result: Record) -> str:
    """Return a sentence if several learning rates of a `result.json` share the best primary metric, else "".

    The sentence names the rates and how one was chosen: by the validation loss. The first rate is chosen in records
    without losses, or if the losses are equal too.
    """
    by_rate = [entry for entry in result.get("by_rate") or [] if isinstance(entry, dict)]
    if len(by_rate) < 2 or not result.get("metrics") or number(result.get("learning_rate")) is None:
        return ""
    values, metric = _table(by_rate, "values"), declared(result, result["metric"])
    equal = leaders(values, metric.higher) if values and values[0] else ()
    if len(equal) < 2:
        return ""
    rates = [f"{entry['learning_rate']:g}" for entry in by_rate]
    shared = f"{', '.join(rates[n] for n in equal[:-1])} and {rates[equal[-1]]}"
    sound = [row[equal[0]] for row in values if row[equal[0]] is not None]
    worth = (
        f"the same {metric.title} on validation ({_mean(metric.format, sound)})"
        if sound
        else f"no finite {metric.title}"
    )
    tied, chosen = f"the learning rates {shared} have {worth}", f"{result['learning_rate']:g}"
    losses = _table(by_rate, "losses")
    if not losses:
        return f"{tied}; the first of them, {chosen}, is reported, although it may not be the best"
    best = lowest(losses, equal)
    means = ", ".join(
        f"{rates[n]}: {_mean(lambda mean: significant(mean, 4), [row[n] for row in losses])}" for n in equal
    )
    if len(best) > 1:
        return f"{tied}, and the lowest loss is shared too ({means}); the first of them, {chosen}, is reported"
    return f"{tied}; {chosen} is reported because it has the lowest loss ({means})"


def _table(by_rate: list[Record], name: str) -> list[tuple[float | None, ...]]:
    """Return the finite numbers of a field, `[seeds, rates]`. Empty if the rates have different numbers of seeds."""
    columns = [entry.get(name) for entry in by_rate]
    if not all(isinstance(column, list) and len(column) == len(columns[0] or []) for column in columns):
        return []
    return list(zip(*([number(value) for value in column or []] for column in columns), strict=True))


def _mean(write: Callable[[float], str], values: Sequence[float | None]) -> str:
    finite = [value for value in values if value is not None]
    if not finite:
        return "none"
    return write(sum(finite) / len(finite))
