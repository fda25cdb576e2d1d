"""Build the notebooks: `python notebooks/build.py` writes a .ipynb without outputs next to each source .py."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

MARK = "# %%"


def sources() -> list[Path]:
    """Return the paths of the notebooks' sources."""
    return sorted(path for path in Path(__file__).parent.glob("*.py") if path.name != "build.py")


def notebook(source: str) -> nbformat.NotebookNode:
    """Return the notebook of a py:percent source: "# %%" begins a code cell, "# %% [markdown]" a text cell.

    Raises:
        ValueError: There is text before the first cell.
    """
    before, *cells = f"\n{source}".split(f"\n{MARK}")
    if before.strip():
        raise ValueError(f"before the first {MARK!r} stands {before.strip()[:40]!r}")
    made = new_notebook(cells=[_cell(n, cell) for n, cell in enumerate(cells)])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.metadata["language_info"] = {"name": "python"}
    return made


def text(made: nbformat.NotebookNode) -> str:
    """Return the text of a notebook's file."""
    nbformat.validate(made)
    return nbformat.writes(made) + "\n"


def _cell(n: int, cell: str) -> nbformat.NotebookNode:
    head, _, body = cell.partition("\n")
    body = body.strip("\n")
    if head.strip() == "[markdown]":
        words = "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.split("\n"))
        return new_markdown_cell(words, id=f"cell-{n}")
    return new_code_cell(body, id=f"cell-{n}")


if __name__ == "__main__":
    for path in sources():
        path.with_suffix(".ipynb").write_text(text(notebook(path.read_text())))
        print(path.with_suffix(".ipynb"))
