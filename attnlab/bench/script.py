"""What the scripts in `benchmarks/` share: their options, the tables they end with, and where results are kept."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnlab.analysis.growth import Growth
from attnlab.analysis.measure import Spread, machine
from attnlab.bench.measuring import BenchConfig, Measured, bench, processor, record
from attnlab.bench.plot import draw
from attnlab.bench.table import grows, tables
from attnlab.console.tables import print_table
from attnlab.storage.json_file import dumps, write_whole
from attnlab.system.environment import environment


def options(
    document: str | None, lengths: Sequence[int], repeat: int, mechanisms: Sequence[str] = ()
) -> argparse.Namespace:
    """The options of a script: other lengths, other repeats, some of its mechanisms, and to keep what comes out."""
    parser = argparse.ArgumentParser(
        description=document, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=list(lengths), metavar="T")
    parser.add_argument("--repeat", type=int, default=repeat, metavar="N", help=f"turns ({repeat})")
    if mechanisms:
        words = {"metavar": "NAME", "choices": mechanisms, "help": "these alone (all)"}
        parser.add_argument("--mechanisms", nargs="+", default=list(mechanisms), **words)
    parser.add_argument("--save", action="store_true", help="keep JSON and plot in results/ beside the script")
    return parser.parse_args()


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def run(script: str, plan: BenchConfig, save: bool) -> list[Measured]:
    """Measure a plan, print its tables, and keep what came out where asked."""
    here = machine()
    found = list(bench(plan, say))
    for table in tables(found, here):
        print_table(table)
    if save:
        keep(script, record(plan, found, here))
        draw(found, here, place(script, "png"))
    return found


def keep(script: str, results: dict[str, Any]) -> None:
    """Write results as JSON beside the script."""
    write_whole(place(script, "json"), dumps(results, indent=1) + "\n")


def facts() -> dict[str, Any]:
    """The machine, measured, with what runs on it."""
    return environment() | {"processor": processor()} | asdict(machine())


def place(script: str, kind: str) -> Path:
    """Where a script keeps its results: results/NAME.KIND beside it."""
    return Path(script).parent / "results" / f"{Path(script).stem}.{kind}"


def claim(what: str, values: Sequence[float | Spread], least: float | None = None, most: float | None = None) -> str:
    """A line that says whether every value keeps a bound, by the one that is nearest to breaking it.

    >>> claim("speed", [1.5, 1.2], least=1.3)
    'MISSED speed: least 1.20, wanted at least 1.3'
    """
    numbers = [value.median if isinstance(value, Spread) else value for value in values]
    if not numbers:
        return f"–      {what}: nothing measured"
    if least is not None:
        return f"{_kept(min(numbers) >= least)} {what}: least {min(numbers):.2f}, wanted at least {least}"
    return f"{_kept(most is not None and max(numbers) <= most)} {what}: most {max(numbers):.2f}, wanted at most {most}"


def claim_growth(what: str, fit: Growth | None, most: float = math.inf, least: float | None = None) -> str:
    """A line that says whether a cost grows as T to a power of at most `most`: by the upper end of the interval.

    Or of at least `least`: by its lower end. Where the bound lies within the interval, it cannot be told.

    >>> claim_growth("growth of linear with T", Growth(1.05, 1.01, 1.1, (1024, 2048)), most=1.3)
    'kept   growth of linear with T: T^1.05 (1.01–1.10), wanted at most 1.3 at its upper end'
    """
    if fit is None:
        return claim(what, [])
    if fit.low is None or fit.high is None:
        return f"–      {what}: T^{grows(fit)}, of too few measurements for an interval"
    if least is not None:
        kept, broken, wanted = fit.low >= least, fit.high < least, f"at least {least} at its lower end"
    else:
        kept, broken, wanted = fit.high <= most, fit.low > most, f"at most {most} at its upper end"
    return f"{_kept(kept) if kept or broken else 'unclear'} {what}: T^{grows(fit)}, wanted {wanted}"


def _kept(good: bool) -> str:
    return "kept  " if good else "MISSED"
