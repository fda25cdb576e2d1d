"""Parts of a study's page for a notebook. Each is in a frame that keeps the page's style apart from the notebook's."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path

from attnlab.console.escape import plain
from attnlab.lab.reporting import attention_section, sections
from attnlab.lab.reporting.layout import document
from attnlab.lab.reporting.map_viewer import SCRIPT
from attnlab.lab.reporting.markup import Markup, tag
from attnlab.lab.results.outcome import outcomes

# The texts of drawings.
DRAWN = "{}: a notebook and the study's page, report.html, draw them"
NO_CURVES = "no learning curves, because no run has finished"
NO_MAPS = "no attention maps were saved for this study"
# The frame grows to the size of its content. Without scripts it scrolls.
FIT = (
    "const page=this.contentDocument,fit=()=>this.style.height=page.documentElement.scrollHeight+'px';"
    "new ResizeObserver(fit).observe(page.body)"
)


@dataclass(frozen=True)
class Inline:
    """A part of a page: HTML in a notebook, text elsewhere."""

    page: str
    """The HTML page."""
    text: str
    """The text."""

    def _repr_html_(self) -> str:
        return tag("iframe", srcdoc=self.page, onload=FIT, style="width:100%;height:30rem;border:0")

    def __repr__(self) -> str:
        return self.text


def table(folder: Path) -> Inline:
    """Return the numbers of every variant. Like all of these functions, raises FolderError if the folder has no run."""
    from io import StringIO

    from rich.console import Console

    from attnlab.lab.results.table import results_table

    printed = StringIO()
    Console(file=printed, width=120, color_system=None, force_jupyter=False).print(results_table(folder))
    return _inline(folder, sections.numbers(outcomes(folder)), printed.getvalue().rstrip())


def verdicts(folder: Path) -> Inline:
    """Return the answer in words, with a plot of the primary metric."""
    found = sections.findings(outcomes(folder))
    return _inline(folder, found, _words(found))


def curves(folder: Path) -> Inline:
    """Return the curves of the loss and of the primary metric on validation."""
    found = sections.learning(outcomes(folder))
    return _inline(folder, found, DRAWN.format("learning curves") if found else NO_CURVES)


def maps(folder: Path) -> Inline:
    """Return the attention maps of each variant, with sliders over layer, head and example."""
    found = attention_section.attention_section(outcomes(folder))
    return _inline(folder, found, DRAWN.format("attention maps") if found else NO_MAPS)


def _inline(folder: Path, part: Markup | None, text: str) -> Inline:
    shown = tag("p", text) if part is None else part
    return Inline(document(Path(folder).resolve().name, shown, script=SCRIPT if "lens" in shown else ""), text)


def _words(part: Markup) -> str:
    """Return the text of paragraphs and list items, one line each."""
    paragraphs = re.findall(r"<(p|li)\b[^>]*>(.*?)</\1>", part, re.DOTALL)
    return "\n".join(plain(html.unescape(re.sub(r"<[^>]+>", "", inner)).strip()) for _, inner in paragraphs)
