"""Helpers for the scripts in `benchmarks/`: their options, their tables, and where results are stored."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from attnlab.analysis.growth import Growth
from attnlab.analysis.measure import Program, Quartiles, machine, quartiles
from attnlab.analysis.roofline import Machine
from attnlab.bench.measuring import BenchConfig, Measured, bench, processor, record
from attnlab.bench.plot import draw
from attnlab.bench.table import grows, tables
from attnlab.console.tables import print_table
from attnlab.storage.json_file import encode_json, write_whole
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


def run(script: str, plan: BenchConfig, save: bool) -> tuple[list[Measured], dict[str, object]]:
    """Measure a plan, print its tables, and optionally draw the results.

    Args:
        script: The path of the script, `__file__`.
        plan: What to measure.
        save: Whether to save a plot in `results/` next to the script.

    Returns:
        The measurements, and their record for `finish`.
    """
    found = list(bench(plan, say))
    for table in tables(found, this_machine()):
        print_table(table)
    if save:
        draw(found, this_machine(), place(script, "png"))
    return found, record(plan, found, this_machine())


@cache
def this_machine() -> Machine:
    """Return the peak performance of this machine, measured once."""
    return machine()


def share(program: Program, seconds: Sequence[float]) -> float | None:
    """Return the fraction of this machine's attainable FLOP per second that a program reaches in its median time.

    Args:
        program: The program.
        seconds: The seconds of its runs.

    Returns:
        The fraction, or None if the program's FLOPs or bytes are not known.
    """
    return this_machine().share(program.flops, program.moved, quartiles(seconds).median)


def finish(script: str, save: bool, claims: Sequence[Claim], **results: object) -> None:
    """Print the claims, and optionally save them with the results and a description of the machine.

    Args:
        script: The path of the script, `__file__`.
        save: Whether to write `results/NAME.json` next to the script.
        claims: The claims of the script.
        **results: Further results, by name.
    """
    for each in claims:
        print(each)
    if save:
        told = {"machine": results.get("machine") or _facts(), "claims": [asdict(each) for each in claims]} | results
        write_whole(place(script, "json"), encode_json(told, indent=1) + b"\n")


def _facts() -> dict[str, object]:
    """Describe the machine, with its measured performance and the installed versions."""
    return environment() | {"processor": processor()} | asdict(this_machine())


def place(script: str, kind: str) -> Path:
    """Return the path of a script's results: results/NAME.KIND next to the script."""
    return Path(script).parent / "results" / f"{Path(script).stem}.{kind}"


@dataclass(frozen=True)
class Claim:
    """A claim of a benchmark, and whether the measurements keep it. As text it is one line."""

    what: str
    """What was measured."""
    measured: str
    """The measured value that is nearest to breaking the claim, or an empty text if nothing was measured."""
    expected: str
    """The bound."""
    verdict: Literal["kept", "MISSED", "unclear", "–"]
    """Whether the claim is kept. "–": too little was measured to tell."""
    spread: str = ""
    """The quartiles of the measured value, or an empty text if it was measured once."""
    roofline: str = ""
    """How near ours comes to the roofline in this measurement, in percent of its limit, or an empty text."""

    def __str__(self) -> str:
        spread = f" ({self.spread})" if self.spread else ""
        roofline = f", ours at {self.roofline} of the roofline" if self.roofline else ""
        expected = f", expected {self.expected}" if self.expected else ""
        return f"{self.verdict:<6} {self.what}: {self.measured or 'nothing measured'}{spread}{roofline}{expected}"


def claim(
    what: str,
    values: Sequence[float | Quartiles],
    least: float | None = None,
    most: float | None = None,
    shares: Sequence[float | None] = (),
) -> Claim:
    """Return whether every value keeps a bound, with the value that is nearest to breaking it.

    Args:
        what: What was measured, with which the line begins.
        values: The measured values. The median counts of quartiles.
        least: The smallest value that keeps the claim, or None.
        most: The largest value that keeps the claim, or None.
        shares: For each value, the fraction of the roofline that ours reached (see `share`). Empty if it is not known.

    Raises:
        ValueError: There are shares, but not one for each value.

    >>> print(claim("speed", [1.5, 1.2], least=1.3))
    MISSED speed: minimum 1.20, expected at least 1.3
    >>> print(claim("speed", [Quartiles(1.5, 1.4, 1.6)], least=1.3, shares=[0.25]))
    kept   speed: minimum 1.50 (1.40–1.60), ours at 25% of the roofline, expected at least 1.3
    """
    if shares and len(shares) != len(values):
        raise ValueError(f"{len(shares)} shares for {len(values)} values")
    numbers = [value.median if isinstance(value, Quartiles) else value for value in values]
    if not numbers:
        return Claim(what, "", "", "–")
    end, measured = (min, "minimum") if least is not None else (max, "maximum")
    # What is not a number breaks every claim.
    n = next((n for n, x in enumerate(numbers) if math.isnan(x)), numbers.index(end(numbers)))
    worst, value = numbers[n], values[n]
    if least is not None:
        expected, kept = f"at least {least}", worst >= least
    else:
        expected, kept = f"at most {most}", most is not None and worst <= most
    spread = f"{value.low:.2f}–{value.high:.2f}" if isinstance(value, Quartiles) else ""
    roofline = f"{100 * reached:.0f}%" if shares and (reached := shares[n]) is not None else ""
    return Claim(what, f"{measured} {worst:.2f}", expected, _kept(kept), spread, roofline)


def claim_growth(what: str, fit: Growth | None, most: float = math.inf, least: float | None = None) -> Claim:
    """Return whether a cost grows as T to a power of at most `most` or at least `least`.

    The upper end of the interval is compared with `most`, the lower end with `least`. If the bound lies within the
    interval, the claim is unclear.

    Args:
        what: What grows, with which the line begins.
        fit: The fitted power law, or None if there were too few lengths.
        most: The largest power that keeps the claim.
        least: The smallest power that keeps the claim, or None.

    >>> print(claim_growth("growth of linear with T", Growth(1.05, 1.01, 1.1, (1024, 2048)), most=1.3))
    kept   growth of linear with T: T^1.05 (1.01–1.10), expected an upper end of at most 1.3
    """
    if fit is None:
        return claim(what, [])
    if fit.low is None or fit.high is None:
        return Claim(what, f"T^{grows(fit)}, too few measurements for an interval", "", "–")
    if least is not None:
        kept, broken, expected = fit.low >= least, fit.high < least, f"a lower end of at least {least}"
    else:
        kept, broken, expected = fit.high <= most, fit.low > most, f"an upper end of at most {most}"
    return Claim(what, f"T^{grows(fit)}", expected, _kept(kept) if kept or broken else "unclear")


def _kept(good: bool) -> Literal["kept", "MISSED"]:
    return "kept" if good else "MISSED"
