"""Learning curves: a line for the mean over seeds, a band for how they differ; SVG in the page's colours."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from attnlab.lab.outcome import Outcome, is_rate
from attnlab.lab.quantity import is_rate as in_percent
from attnlab.lab.quantity import number
from attnlab.lab.report.markup import Markup, tag
from attnlab.lab.statistics import interval

# Stand-ins, replaced by the page's own colours once matplotlib has written them: they follow light and dark.
_INK, _GRID = "#010101", "#010102"
_VARIANTS = tuple(f"#0102{n:02x}" for n in range(8))
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (2, 1.2)), (0, (7, 1.5, 1.5, 1.5)))
POINTS = 160  # more are averaged together: no screen shows them apart


@dataclass(frozen=True)
class Curve:
    """One variant: steps [N], values [N seeds] of its whole seeds, and the points of seeds cut short."""

    name: str
    order: int
    steps: np.ndarray
    values: np.ndarray
    cut: tuple[tuple[np.ndarray, np.ndarray], ...]

    def band(self) -> tuple[np.ndarray, np.ndarray] | None:
        """From five seeds on the 95% interval of the mean, below that the least and the greatest value."""
        seeds = self.values.shape[1]
        if seeds < 2:
            return None
        if seeds < 5:
            return self.values.min(1), self.values.max(1)
        low, high = zip(*map(interval, self.values), strict=True)
        return np.array(low), np.array(high)


def curve(outcome: Outcome, key: str) -> Curve | None:
    """What a finished run recorded under `key` at the learning rate it chose; None where nothing was.

    A seed that has no number at some step where others have one (it diverged) is kept out of mean and band,
    and drawn by itself as far as it goes.
    """
    seeds = _by_seed(outcome, key)
    steps = np.array(sorted({step for values in seeds.values() for step in values}))
    whole = {seed: values for seed, values in seeds.items() if len(values) == len(steps)}
    cut = tuple(_points(values) for seed, values in seeds.items() if seed not in whole)
    if not seeds:
        return None
    table = np.array([[values[step] for values in whole.values()] for step in steps])
    return Curve(outcome.name, outcome.order, *_thin(steps, table.reshape(len(steps), -1)), cut)


def draw(curves: Sequence[Curve], key: str, label: str) -> Markup:
    """An SVG of the curves; `label` is what it says to those who do not see it. Its only text is numbers."""
    # Where its caches lie, and that they are being built, is nothing to a person who wants a page.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": key,
        "font.size": 10,
        "path.simplify_threshold": 0.3,
    }
    with matplotlib.rc_context():
        # As matplotlib comes, whatever the settings of the person who draws.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        figure = Figure(figsize=(5, 3.1), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for one in curves:
            _draw(axes, one, in_percent(key))
        _dress(axes, curves, key)
        file = StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _inline(file.getvalue(), label)


def _by_seed(outcome: Outcome, key: str) -> dict[int, dict[int, float]]:
    rate = number((outcome.result or {}).get("learning_rate"))
    seeds: dict[int, dict[int, float]] = {}
    for row in outcome.rows:
        value = number(row.get(key))
        if value is not None and (rate is None or is_rate(row["learning_rate"], rate)):
            seeds.setdefault(row["seed"], {})[row["step"]] = value
    return seeds


def _points(values: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    steps = sorted(values)
    return np.array(steps), np.array([values[step] for step in steps])


def _thin(steps: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size = -(-len(steps) // POINTS)
    if size < 2:
        return steps, values
    starts = np.arange(0, len(steps), size)
    counts = np.diff(starts, append=len(steps))
    return np.add.reduceat(steps, starts) / counts, np.add.reduceat(values, starts) / counts[:, None]


def _draw(axes: Any, one: Curve, rate: bool) -> None:
    style = {"color": _VARIANTS[one.order % 8], "linewidth": 1.8}
    marker = {"marker": "o", "markersize": 3.5} if len(one.steps) <= 12 else {}
    if one.values.shape[1]:
        dashes = _DASHES[(one.order + one.order // 8) % len(_DASHES)]
        axes.plot(one.steps, one.values.mean(1), linestyle=dashes, **style, **marker)
    if band := one.band():
        low, high = (np.clip(end, 0, 1) for end in band) if rate else band
        axes.fill_between(one.steps, low, high, color=style["color"], alpha=0.18, linewidth=0)
    for steps, values in one.cut:
        axes.plot(steps, values, linestyle=":", color=style["color"], linewidth=1)
        axes.plot(steps[-1:], values[-1:], "x", color=style["color"], markersize=6)


def _dress(axes: Any, curves: Sequence[Curve], key: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)
    axes.tick_params(which="both", colors=_INK, length=0, pad=5)
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel("step", color=_INK)
    axes.set_xlim(0, max(one.steps[-1] for one in curves) * 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if in_percent(key):
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=None))
    elif _decades(curves) > 1.3:
        axes.set_yscale("log")
        # Plain numbers: powers of ten would be written as mathematics, which the page cannot set.
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter("")


def _decades(curves: Sequence[Curve]) -> float:
    values = np.concatenate([one.values.ravel() for one in curves])
    if values.size == 0 or values.min() <= 0:
        return 0.0
    return float(np.log10(values.max() / values.min()))


def _inline(svg: str, label: str) -> Markup:
    """What stands in the page: no prologue, no metadata, no style that reaches further than the figure."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.S)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.S)
    # Names of groups repeat from figure to figure; those that something refers to are hashes.
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    # A hundredth of a point is enough for a place; the numbers along the axes stand between tags and stay.
    body = re.sub(r"<[^>]*>", lambda found: re.sub(r"(\.\d{2})\d+", r"\1", found[0]), body)
    for stand_in, ours in {_INK: "ink-2", _GRID: "grid"}.items():
        body = body.replace(stand_in, f"var(--{ours})")
    for n, stand_in in enumerate(_VARIANTS):
        body = body.replace(stand_in, f"var(--v{n})")
    body = re.sub(r"\s*\n\s*", "\n", body)
    viewbox = re.search(r'viewBox="[^"]*"', body)
    inner = body[body.index(">") + 1 :]
    opening = tag("svg", role="img", aria_label=label, class_="curve").removesuffix("></svg>")
    return Markup(f"{opening} {viewbox[0] if viewbox else ''}>{inner.strip()}")
