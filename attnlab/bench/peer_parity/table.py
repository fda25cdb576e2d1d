"""The tables of the comparison with other libraries, for a terminal and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from attnlab.bench.parity_table import small
from attnlab.bench.peer_parity.comparison import FORMS, LIMITS, OUTPUT, PeerResult
from attnlab.console.format import NONE
from attnlab.console.tables import empty
from attnlab.system.environment import environment

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

STYLES = {"ok": "green", "known": "yellow", "not reproduced": "yellow", "✗": "bold red"}
COLUMNS = [(form, gradients) for form in FORMS for gradients in (False, True)][:-1]  # no gradients token by token
HEADS = ["ours", "theirs", "limit", *("\n∂" if gradients else f"{form}\ny" for form, gradients in COLUMNS), ""]


def peer_tables(results: Sequence[PeerResult]) -> list[Table]:
    """Return one table for each package, with one row for each of its functions.

    The columns are the largest errors of the output and of all gradients, by form.
    """
    from rich.text import Text

    tables = []
    for package, group in groupby(results, key=lambda each: each.peer.package):
        rows = list(group)
        table = empty(f"{package} {rows[0].peer.version}", HEADS, words=3)
        for each in rows:
            cells = (_cell(each, form, gradients) for form, gradients in COLUMNS)
            verdict = Text(each.verdict, style=STYLES[each.verdict])
            table.add_row(
                Text(each.peer.ours.name), Text(each.peer.function), Text(small(each.peer.limit)), *cells, verdict
            )
        table.caption, table.caption_justify = Text("\n".join([_legend(), *_notes(rows)])), "left"
        table.columns[1].no_wrap = False
        tables.append(table)
    return tables


def record(results: Sequence[PeerResult]) -> dict[str, object]:
    """Return everything for JSON: the machine, the limits, every number, and what fails."""
    return {
        "machine": environment() | {"matmul_precision": "float32"},
        "limits": LIMITS,
        "comparisons": [
            {
                "ours": each.peer.ours.name,
                "package": each.peer.package,
                "version": each.peer.version,
                "function": each.peer.function,
                "dtype": each.peer.dtype,
                "limit": each.peer.limit,
                "errors": each.errors,
                "verdict": each.verdict,
                "failure": each.failure or None,
                "known_differences": {form: vars(known) for form, known in each.peer.known_differences.items()},
                "seconds": round(each.seconds, 2),
            }
            for each in results
        ],
        "passed": not any(each.failure for each in results),
    }


def verdict(results: Sequence[PeerResult]) -> str:
    """Return one line that names the comparisons that exceed a limit, or ""."""
    failures = [each.failure for each in results if each.failure]
    return f"{len(failures)} of {len(results)} comparisons fail: {'; '.join(failures)}" if failures else ""


def _legend() -> str:
    limits = ", ".join(f"{dtype} {small(limit)}" for dtype, limit in LIMITS.items())
    return f"y: max |theirs − ours| / max |ours| of outputs, ∂: the largest of all gradients; limits: {limits}"


def _notes(results: Sequence[PeerResult]) -> list[str]:
    """Return what is known of the differences, in a line each with the functions that have it."""
    found: dict[str, list[str]] = {}
    for each in results:
        for text in dict.fromkeys(known.text for known in each.peer.known_differences.values()):
            forms = "/".join(form for form, known in each.peer.known_differences.items() if known.text == text)
            found.setdefault(text, []).append(f"{each.peer.ours.name} with {each.peer.function} ({forms})")
    return [f"known: {text}: {', '.join(where)}" for text, where in found.items()]


def _cell(each: PeerResult, form: str, gradients: bool) -> Text:
    """Format the error of the output or the largest one of the gradients, or a dash if the peer lacks the form."""
    from rich.text import Text

    found = [x for what, x in each.errors.get(form, {}).items() if (what != OUTPUT) is gradients]
    if not found:
        return Text(NONE)
    worst = max(found, key=lambda x: float("inf") if x != x else x)
    return Text(f"{worst:.0e}") if worst <= each.peer.limit else Text(f"✗{worst:.0e}", style="bold red")
