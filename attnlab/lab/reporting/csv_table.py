"""The results as CSV, with one row for each variant and seed.

The columns, which the first row names, are:

- `variant`.
- `state`: finished, failed (the primary metric is not a finite number), diverged, or the progress of an unfinished
  run.
- `seed` and `learning_rate`.
- The metrics on the test set, the primary metrics first.
- The costs of the variant, the same in each of its rows: `parameters`, `flops` (of a training step of one lane),
  `steps`, `training_flops` (of one lane), `state_bytes`, `memory_bytes` (of one call of several steps, estimated by
  the compiler), `peak_memory` (bytes of the process), `seconds` (of training all lanes together), `seconds_per_step`.

A value that is unknown or not finite is empty. Seeds that diverged have rows without metrics. An unfinished run has one
row. Nothing is averaged here: means and intervals are in `result.json`.

A name that a spreadsheet would read as a formula is prefixed with an apostrophe.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO

from attnlab.console.format import number
from attnlab.lab.results.outcome import Outcome
from attnlab.lab.results.table import state

COSTS = ("parameters", "flops", "steps", "training_flops", "state_bytes", "memory_bytes", "peak_memory")
TIMES = ("seconds", "seconds_per_step")


def csv_text(found: Sequence[Outcome]) -> str:
    """Return the contents of `table.csv` for the variants of a study."""
    primary = dict.fromkeys(outcome.metric for outcome in found if outcome.result)
    metrics = list(primary | dict.fromkeys(metric for outcome in found for metric in outcome.metrics))
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    heads = ("variant", "state", "seed", "learning_rate", *metrics, *COSTS, *TIMES)
    writer.writerow([_text(head) for head in heads])
    for outcome in found:
        costs = [_number(_cost(outcome, field)) for field in (*COSTS, *TIMES)]
        writer.writerows([*lane, *costs] for lane in _lanes(outcome, metrics))
    return file.getvalue()


def _lanes(outcome: Outcome, metrics: list[str]) -> Iterator[list[str]]:
    """Yield the cells of variant, state, seed, learning rate and metrics of each seed at the chosen rate."""
    variant, empty = _text(outcome.name), [""] * len(metrics)
    if outcome.result is None:
        yield [variant, state(outcome), "", "", *empty]
        return
    rate = _number(outcome.result.get("learning_rate"))
    by_seed = [outcome.values(metric) for metric in metrics]
    for seed in outcome.alive_seeds():
        values = [_number(values.get(seed)) for values in by_seed]
        failed = outcome.primary is None or outcome.values(outcome.metric).get(seed) is None
        yield [variant, "failed" if failed else "finished", _number(seed), rate, *values]
    for lane in outcome.lost_lanes():
        yield [variant, "diverged", _number(lane.get("seed")), rate, *empty]


def _cost(outcome: Outcome, field: str) -> object:
    return outcome.training_flops() if field == "training_flops" else (outcome.result or {}).get(field)


def _number(value: object) -> str:
    return "" if number(value) is None else repr(value)


def _text(value: str) -> str:
    return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
