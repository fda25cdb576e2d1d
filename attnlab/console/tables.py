"""Tables of text for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from attnlab.console.escape import plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def columns(rows: Sequence[Sequence[str]], right: bool = False) -> list[str]:
    """Format rows as lines with aligned columns. With `right`, all but the first column are right-aligned."""
    rows = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<" if n == 0 or not right else ">" for n in range(len(widths))]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in rows
    ]


def print_table(table: RenderableType, stream: TextIO | None = None) -> None:
    """Print a rich table on `stream` (standard output by default), 240 columns wide if it is not a terminal."""
    from rich.console import Console

    out = stream or sys.stdout
    Console(file=out, width=None if out.isatty() else 240).print(table)


def empty(title: str, heads: Sequence[str], words: int = 2) -> Table:
    """Return a table without rows. The first `words` columns are left-aligned for words, the others for numbers.

    Args:
        title: The title.
        heads: The heads of the columns.
        words: The number of columns with words. Default: 2.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(plain(title)),
        title_justify="left",
        padding=(0, 1, 0, 0),
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    for n, head in enumerate(heads):
        table.add_column(Text(head), justify="left" if n < words else "right", no_wrap=True)
    return table


def fill(table: Table, cells: Sequence[str]) -> None:
    """Append a row to a table."""
    from rich.text import Text

    # Text, not str: rich would take square brackets for its own markup.
    table.add_row(*(Text(plain(cell)) for cell in cells))
