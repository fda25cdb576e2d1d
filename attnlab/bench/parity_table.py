"""The parity table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attnlab.analysis.forms import KINDS
from attnlab.bench.parity import LIMITS, LOOSE, STEADY, ParityResult
from attnlab.console.format import NONE

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "fp16"}


def parity_table(results: Sequence[ParityResult], lengths: Sequence[int]) -> Table:
    """Return a table with one row for each mechanism.

    The columns are the largest difference of each kind of form, the float32 error at every length, and the largest
    errors of the other precisions.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    limits = ", ".join(f"{SHORT.get(name, name)} {small(limit)}" for name, limit in LIMITS.items())
    notes = [
        f"~ means a limit of {LOOSE}; {each.name}: {each.ill_conditioned}"
        for each in results
        if each.ill_conditioned and _longer(lengths)
    ]
    table = Table(
        title=Text("forms: max |a − b| in float64; precisions: max |y − ŷ| / max |ŷ|"),
        caption=Text("\n".join([f"limits: {limits}; {NONE} means no such form; ✗ means above the limit", *notes])),
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column(Text("mechanism"), no_wrap=True)
    heads = [*KINDS, *(f"f32\n{T}" for T in lengths), *(f"{SHORT[d]}\n≤{lengths[-1]}" for d in ("bfloat16", "float16"))]
    for head in heads:
        table.add_column(Text(head), justify="right", no_wrap=True)
    table.add_column(Text(""), no_wrap=True)
    for each in results:
        table.add_row(Text(each.name), *_cells(each, lengths), _word(each))
    return table


def _cells(each: ParityResult, lengths: Sequence[int]) -> Iterable[Text]:
    for kind in KINDS:
        yield _cell(each.forms.get(kind, {}).values(), LIMITS["forms"])
    single = each.errors.get("float32", {})
    for T in lengths:
        yield _cell(single.get(T, {}).values(), LIMITS["float32"], each.loose(T))
    for dtype in ("bfloat16", "float16"):
        found = {T: by_mask for T, by_mask in each.errors.get(dtype, {}).items() if not each.loose(T)}
        yield _cell([x for by_mask in found.values() for x in by_mask.values()], LIMITS[dtype])


def _longer(lengths: Sequence[int]) -> bool:
    return max(lengths, default=0) > STEADY


def _cell(values: Iterable[float | None], limit: float, loose: bool = False) -> Text:
    """Format the largest of the numbers, or a dash if there is none."""
    from rich.text import Text

    given = [value for value in values if value is not None]
    if not given:
        return Text(NONE)
    worst = max(given, key=lambda x: float("inf") if x != x else x)
    if loose and worst <= LOOSE:
        return Text(f"~{small(worst)}")
    return Text(small(worst)) if worst <= limit else Text(f"✗{small(worst)}", style="bold red")


def _word(each: ParityResult) -> Text:
    from rich.text import Text

    return Text("✗", style="bold red") if each.failure else Text("ok", style="green")


def small(value: float) -> str:
    """Format a small number with few characters.

    >>> small(4.4e-16), small(1.5e-2), small(0.0), small(float("nan"))
    ('4e-16', '1.5e-2', '0', 'nan')
    """
    if value == 0 or value != value:
        return f"{value:.0f}"
    digits, _, power = f"{value:.1e}".partition("e")
    if abs(value) < 1e-9:  # rounding error only, for which one digit suffices
        digits, _, power = f"{value:.0e}".partition("e")
    return f"{digits.removesuffix('.0')}e{int(power)}" if power else digits
