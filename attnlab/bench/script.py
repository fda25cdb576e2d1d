"""Helpers for the scripts in `benchmarks/`: their options, their tables, and where results are stored."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from attnlab.analysis.growth import Growth
from attnlab.analysis.measure import Quartiles, machine
from attnlab.bench.measuring import BenchConfig, Measured, bench, processor, record
from attnlab.bench.plot import draw
from attnlab.bench.table import grows, tables
from attnlab.console.tables import print_table
from attnlab.storage.json_file import dumps, write_whole
from attnlab.system.environment import environment


def options(
    document: str | None,
    lengths: Sequence[int],
    repeat: int,
    mechanisms: Sequence[str] = (),
    sizes: Sequence[str] = (),
) -> argparse.Namespace:
    """Parse the options of a script: lengths, repeats, selections of mechanisms and sizes, whether to save the results.

    Args:
        document: The docstring of the script, for `--help`, or None.
        lengths: The default sequence lengths, in tokens.
        repeat: The default number of timed turns.
        mechanisms: The names that can be selected, by default all. Without names there is no option `--mechanisms`.
        sizes: The names of sizes, likewise.

    Returns:
        The options `lengths`, `repeat`, `save` and, if there are names, `mechanisms` and `sizes`.
    """
    parser = argparse.ArgumentParser(
        description=document, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=list(lengths), metavar="T", help="sequence lengths")
    parser.add_argument("--repeat", type=int, default=repeat, metavar="N", help=f"timed turns (default: {repeat})")
    for what, names in {"mechanisms": mechanisms, "sizes": sizes}.items():
        if names:
            words = {"metavar": "NAME", "choices": names, "help": f"{what} to measure (default: all)"}
            parser.add_argument(f"--{what}", nargs="+", default=list(names), **words)
    parser.add_argument("--save", action="store_true", help="save JSON and plot in results/ next to the script")
    return parser.parse_args()


def say(text: str) -> None:
    """Print a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def run(script: str, plan: BenchConfig, save: bool) -> list[Measured]:
    """Measure a plan, print its tables, and optionally save the results.

    Args:
        script: The path of the script, `__file__`.
        plan: What to measure.
        save: Whether to save JSON and a plot in `results/` next to the script.

    Returns:
        The measurements.
    """
    here = machine()
    found = list(bench(plan, say))
    for table in tables(found, here):
        print_table(table)
    if save:
        keep(script, record(plan, found, here))
        draw(found, here, place(script, "png"))
    return found


def keep(script: str, results: dict[str, object]) -> None:
    """Write results as JSON to the script's folder of results."""
    write_whole(place(script, "json"), dumps(results, indent=1) + "\n")


def facts() -> dict[str, object]:
    """Describe the machine, with its measured performance and the installed versions."""
    return environment() | {"processor": processor()} | asdict(machine())


def place(script: str, kind: str) -> Path:
    """Return the path of a script's results: results/NAME.KIND next to the script."""
    return Path(script).parent / "results" / f"{Path(script).stem}.{kind}"


def claim(what: str, values: Sequence[float | Quartiles], least: float | None = None, most: float | None = None) -> str:
    """Return a line that says whether every value keeps a bound. It shows the value that is nearest to breaking it.

    Args:
        what: What was measured, with which the line begins.
        values: The measured values. The median counts of quartiles.
        least: The smallest value that keeps the claim, or None.
        most: The largest value that keeps the claim, or None.

    >>> claim("speed", [1.5, 1.2], least=1.3)
    'MISSED speed: minimum 1.20, expected at least 1.3'
    """
    numbers = [value.median if isinstance(value, Quartiles) else value for value in values]
    if not numbers:
        return f"–      {what}: nothing measured"
    if least is not None:
        return f"{_kept(min(numbers) >= least)} {what}: minimum {min(numbers):.2f}, expected at least {least}"
    kept = _kept(most is not None and max(numbers) <= most)
    return f"{kept} {what}: maximum {max(numbers):.2f}, expected at most {most}"


def claim_growth(what: str, fit: Growth | None, most: float = math.inf, least: float | None = None) -> str:
    """Return a line that says whether a cost grows as T to a power of at most `most` or at least `least`.

    The upper end of the interval is compared with `most`, the lower end with `least`. If the bound lies within the
    interval, the claim is unclear.

    Args:
        what: What grows, with which the line begins.
        fit: The fitted power law, or None if there were too few lengths.
        most: The largest power that keeps the claim.
        least: The smallest power that keeps the claim, or None.

    >>> claim_growth("growth of linear with T", Growth(1.05, 1.01, 1.1, (1024, 2048)), most=1.3)
    'kept   growth of linear with T: T^1.05 (1.01–1.10), expected an upper end of at most 1.3'
    """
    if fit is None:
        return claim(what, [])
    if fit.low is None or fit.high is None:
        return f"–      {what}: T^{grows(fit)}, too few measurements for an interval"
    if least is not None:
        kept, broken, expected = fit.low >= least, fit.high < least, f"a lower end of at least {least}"
    else:
        kept, broken, expected = fit.high <= most, fit.low > most, f"an upper end of at most {most}"
    return f"{_kept(kept) if kept or broken else 'unclear'} {what}: T^{grows(fit)}, expected {expected}"


def _kept(good: bool) -> str:
    return "kept  " if good else "MISSED"
