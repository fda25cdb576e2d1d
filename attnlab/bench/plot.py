"""Plot the bench: seconds and memory over length, and the roofline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.analysis.roofline import Machine
from attnlab.bench.measuring import Measured
from attnlab.plotting import canvas, plain, png
from attnlab.storage.json_file import folder_errors

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)))
PEER = {"color": "0.45", "linewidth": 1.1}


def draw(found: Sequence[Measured], machine: Machine, file: Path) -> None:
    """Write a PNG with seconds and memory over T for each mask (log-log), and the roofline below.

    Only the last of the measured passes is drawn, which is forward+backward if it was measured. Peers are grey.

    Args:
        found: The measurements.
        machine: The machine's performance.
        file: The file to write.

    Raises:
        FolderError: The file cannot be written.
    """
    which = found[-1].which
    found = [each for each in found if each.which == which and each.seconds]
    masks = list(dict.fromkeys(each.mask for each in found))
    names = list(dict.fromkeys(each.name for each in found))
    looks = {name: _look(n, len(names)) for n, name in enumerate(names)}
    with plain():
        figure = canvas(5.2 * max(1, len(masks)) + 2.4, 11)
        figure.suptitle(f"{which}, {machine.name}")
        grid = figure.add_gridspec(3, max(1, len(masks)))
        for n, mask in enumerate(masks):
            here = [each for each in found if each.mask == mask]
            _lines(figure.add_subplot(grid[0, n]), here, looks, f"{mask}: seconds", lambda each: each.median)
            _lines(figure.add_subplot(grid[1, n]), here, looks, f"{mask}: bytes", lambda each: each.memory)
        _roofline(figure.add_subplot(grid[2, :]), found, looks, machine)
        handles: dict[str, Artist] = {}
        for axes in figure.axes:
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(handles.values(), handles, loc="outside right upper", fontsize=8, frameon=False)
        with folder_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(figure, 130))


def _lines(
    axes: Axes, found: Sequence[Measured], looks: dict, title: str, value: Callable[[Measured], float | None]
) -> None:
    from matplotlib.ticker import NullLocator

    for name, look in looks.items():
        points = [(each.T, value(each)) for each in found if each.name == name and value(each)]
        if points:
            axes.plot(*zip(*points, strict=True), label=name, marker=".", **look)
    if title.endswith("seconds"):
        _peers(axes, found)
    _logarithmic(axes, title, "T, tokens", "")
    lengths = sorted({each.T for each in found})
    axes.set_xticks(lengths, [f"{T:,}" for T in lengths])
    axes.xaxis.set_minor_locator(NullLocator())


def _peers(axes: Axes, found: Sequence[Measured]) -> None:
    peers = list(dict.fromkeys(peer for each in found for peer in each.peers))
    for n, peer in enumerate(peers):
        points = {
            each.T: sorted(each.peers[peer].seconds)[len(each.peers[peer].seconds) // 2]
            for each in found
            if peer in each.peers
        }
        axes.plot(list(points), list(points.values()), label=peer, marker="x", linestyle=DASHES[n % 3], **PEER)


def _roofline(axes: Axes, found: Sequence[Measured], looks: dict, machine: Machine) -> None:
    """Plot FLOP/s over FLOP per byte at the longest sequences. The line is the machine's limit."""
    longest: dict[tuple[str, str], Measured] = {(each.name, each.mask): each for each in found}
    points = [(each, x, y) for each in longest.values() if (x := each.intensity) and (y := each.rate)]
    marks = dict(zip(dict.fromkeys(each.mask for each, _, _ in points), "o^s", strict=False))
    for each, x, y in points:
        axes.scatter(x, y, color=looks[each.name]["color"], marker=marks[each.mask], zorder=3)
    ends = [x for _, x, _ in points] + [machine.ridge]
    line = [min(ends) / 2, machine.ridge, max(ends) * 2]
    axes.plot(line, [machine.attainable(x) for x in line], color="black", linewidth=1.2)
    axes.axvline(machine.ridge, color="0.7", linewidth=0.8, linestyle=":")
    shapes = ", ".join(f"{mark} {mask}" for mask, mark in zip(marks, "●▲■", strict=False))
    _logarithmic(axes, f"roofline at the longest T ({shapes})", "FLOP per byte", "FLOP/s")


def _logarithmic(axes: Axes, title: str, x: str, y: str) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    for axis in (axes.xaxis, axes.yaxis):
        # Plain numbers, because parsing of mathematics is switched off and powers of ten would need it.
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter("")
    axes.set_title(title, fontsize=10)
    axes.grid(which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)


def _look(n: int, count: int) -> dict[str, object]:
    import matplotlib

    palette = matplotlib.colormaps["tab10"]
    return {"color": palette(n % 10), "linestyle": DASHES[n // 10 % 3], "linewidth": 1.5 if count < 10 else 1.1}
