"""The results as CSV: one row for each variant and seed.

The columns, named in the first row: `variant`; `state`, which is finished, failed (the headline is not a finite
number), diverged, or how far a run is that has not finished; `seed` and `learning_rate`; then the metrics on the test
set, the headlines first, each in its own column; then what the variant cost, the same in each of its rows:
`parameters`, `flops` (of a training step of one lane), `steps`, `training_flops` (of one lane), `state_bytes`,
`memory_bytes` (of one call of several steps, by the compiler), `peak_memory` (bytes of the process), `seconds` (of
training all lanes together), `seconds_per_step`.
What is no finite number, or not known, is left empty. Seeds that diverged have rows without metrics; a run that has not
finished has one row. Nothing here is averaged: means and intervals are in `result.json`.

A name that a spreadsheet would take for a formula has an apostrophe before it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

from attnlab.console.format import number
from attnlab.lab.results.outcome import Outcome
from attnlab.lab.results.table import state

COSTS = ("parameters", "flops", "steps", "training_flops", "state_bytes", "memory_bytes", "peak_memory")
TIMES = ("seconds", "seconds_per_step")


def rows(found: Sequence[Outcome]) -> str:
    """The whole file."""
    headline = dict.fromkeys(outcome.metric for outcome in found if outcome.result)
    metrics = list(headline | dict.fromkeys(metric for outcome in found for metric in outcome.metrics))
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    heads = ("variant", "state", "seed", "learning_rate", *metrics, *COSTS, *TIMES)
    writer.writerow([_text(head) for head in heads])
    for outcome in found:
        costs = [_number(_cost(outcome, field)) for field in (*COSTS, *TIMES)]
        writer.writerows([*_text_of(lane), *costs] for lane in _lanes(outcome, metrics))
    return file.getvalue()


def _lanes(outcome: Outcome, metrics: list[str]) -> Iterator[list[Any]]:
    """Variant, state, seed, learning rate and metrics, of each seed at the rate that was chosen."""
    empty: list[Any] = [None] * len(metrics)
    if outcome.result is None:
        yield [outcome.name, state(outcome), None, None, *empty]
        return
    rate = outcome.result.get("learning_rate")
    by_seed = [outcome.values(metric) for metric in metrics]
    for seed in outcome.alive():
        values = [values.get(seed) for values in by_seed]
        failed = outcome.headline is None or outcome.values(outcome.metric).get(seed) is None
        yield [outcome.name, "failed" if failed else "finished", seed, rate, *values]
    for lane in outcome.lost():
        yield [outcome.name, "diverged", lane.get("seed"), rate, *empty]


def _cost(outcome: Outcome, field: str) -> Any:
    return outcome.training_flops() if field == "training_flops" else (outcome.result or {}).get(field)


def _text_of(lane: list[Any]) -> list[str]:
    name, told, seed, *numbers = lane
    return [_text(name), told, _number(seed), *map(_number, numbers)]


def _number(value: Any) -> str:
    return "" if number(value) is None else repr(value)


def _text(value: str) -> str:
    return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
