"""The figures as PNG, for slides and papers: they stand beside the page."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from attnlab.lab.outcome import Outcome
from attnlab.lab.quantity import is_rate, percent, title, within
from attnlab.lab.reporting.appearance import LIGHT
from attnlab.lab.reporting.curves import Curve
from attnlab.lab.reporting.figures import Paint, canvas, panel, plain, undressed

PAINT = Paint(LIGHT["ink"], LIGHT["grid"], tuple(LIGHT[f"v{n}"] for n in range(8)))
LONGEST = 40  # letters of a name
PIXELS = 160  # to an inch


def answer(found: Sequence[Outcome]) -> bytes | None:
    """The headline metric of each variant: its seeds, their mean and its interval. None where nothing is sound."""
    from matplotlib.ticker import PercentFormatter

    rows = [outcome for outcome in found if outcome.headline is not None and outcome.headline.sound]
    if not rows:
        return None
    metric = next(outcome.result["metric"] for outcome in rows if outcome.result)
    with plain():
        figure = canvas(7, 1.1 + 0.32 * len(rows))
        axes = figure.add_subplot()
        for n, outcome in enumerate(rows):
            _strip(axes, -n, outcome, metric)
        undressed(axes, PAINT, "x")
        axes.set_yticks([-n for n in range(len(rows))], [_name(outcome.name) for outcome in rows])
        axes.set_ylim(-len(rows) + 0.4, 0.6)
        axes.set_xlabel(f"{title(metric)} on the test set", color=PAINT.ink)
        if is_rate(metric):
            axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=None, symbol=percent(metric)))
        return _png(figure)


def learning(panels: Sequence[tuple[str, str, Sequence[Curve]]]) -> bytes | None:
    """Curves side by side, each panel (key, words, curves), with one legend. None where there are no curves."""
    if not panels:
        return None
    named = {one.order: one for _, _, curves in panels for one in curves}
    with plain():
        lines = -(-len(named) // 4)
        figure = canvas(5 * len(panels), 3.4 + 0.22 * lines)
        shown: dict[str, Any] = {}
        for axes, (key, words, curves) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            panel(axes, curves, key, PAINT)
            axes.set_title(words, color=PAINT.ink, fontsize=11, loc="left")
            handles, labels = axes.get_legend_handles_labels()
            shown |= dict(zip(labels, handles, strict=True))
        words = list(map(_name, shown))
        figure.legend([*shown.values()], words, loc="outside lower center", ncols=min(4, len(shown)), frameon=False)
        return _png(figure)


def _strip(axes: Any, y: float, outcome: Outcome, metric: str) -> None:
    estimate, color = outcome.headline, PAINT.variants[outcome.order % 8]
    if estimate is None:
        return
    if estimate.low is not None and estimate.high is not None:
        axes.plot(within(metric, estimate.low, estimate.high), [y, y], color=color, linewidth=2.5, alpha=0.5)
    axes.plot(estimate.values, [y] * len(estimate.values), "o", markersize=6, markerfacecolor="none", color=color)
    axes.plot([estimate.mean], [y], "o", markersize=8, color=color)


def _name(name: str) -> str:
    """A name that a picture can hold: one line, of letters that there are."""
    shown = "".join(letter if letter.isprintable() else "·" for letter in name)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _png(figure: Any) -> bytes:
    file = BytesIO()
    # The version of matplotlib in it would make two machines' pictures differ.
    figure.savefig(file, format="png", dpi=PIXELS, metadata={"Software": None})
    return file.getvalue()
