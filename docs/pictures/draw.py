"""Draw softmax_or_linear_light.svg and _dark.svg from softmax_or_linear.json: python docs/pictures/draw.py."""

import hashlib
import json
import re
from decimal import Decimal
from io import StringIO
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

DATA = Path(__file__).with_name("softmax_or_linear.json")
WIDTH, ROW, HEAD, TOP = 800, 26, 40, 100  # in pixels, as all places and sizes below
# Of each unit: the numbers at the ends of its scale, the better one to the right, and the places of the ends.
SCALES = {"%": (0, 100, 232, 462), "nats": (2.15, 1.55, 264, 402), "Fréchet": (8, 4, 264, 402)}
COLUMNS = {"softmax": 552, "linear": 622, "other linear": 694}
THEMES = {
    "light": {"ink": "#1f2328", "faint": "#59636e", "line": "#d1d9e0", "softmax": "#0068a8", "linear": "#bc4c00"},
    "dark": {"ink": "#f0f6fc", "faint": "#9198a1", "line": "#3d444d", "softmax": "#58b4f0", "linear": "#f0a04b"},
}


def load() -> list[dict]:
    """Return the rows of the data. Numbers keep the digits with which they are written."""
    return json.loads(DATA.read_text(), parse_float=Decimal, parse_int=Decimal)["rows"]


def group(row: dict) -> str:
    """Return which group of the picture a row belongs to, from its verdicts alone."""
    if any(value["verdict"] == "better" for value in row["values"]):
        return "linear"
    return {"worse": "softmax", "the same": "same", None: "none"}.get(row["values"][1]["verdict"], "unclear")


def texts(rows: list[dict]) -> dict[str, str]:
    """Return the answer, two lines, and the title of each group."""
    plain = [row["values"][1]["verdict"] for row in rows]
    won = [(row["task"], value["mechanism"]) for row in rows for value in row["values"] if value["verdict"] == "better"]
    tasks, names = (" and ".join(sorted({each.split(",")[0] for each in column})) for column in zip(*won, strict=True))
    return {
        "answer": f"Plain linear attention is behind softmax in {plain.count('worse')} of {len(rows)} comparisons "
        f"and ahead in {plain.count('better') or 'none'}.\n"
        f"Of the other linear mechanisms, {names} is ahead of softmax in {len(won)}, on {tasks}.",
        "softmax": "Softmax is ahead of plain linear attention",
        "linear": f"A linear mechanism, {names}, is ahead of softmax",
    } | {"same": "The same", "unclear": "Unclear: these seeds cannot decide", "none": "No verdict is recorded"}


def digest() -> str:
    """Return what the pictures carry as their description: a digest of the data and of this script."""
    return hashlib.sha256(DATA.read_bytes() + Path(__file__).read_bytes()).hexdigest()


def smaller(svg: str) -> str:
    """Return matplotlib's SVG at about half its size: no comments, clips and spaces, short names of letters."""
    svg = re.sub(r'<!--.*?-->| clip-path="[^"]*"| id="(line2d|text)_[0-9]+"', "", svg, flags=re.S)
    svg = re.sub(r'<use xlink:href="#DejaVuSans-(Bold-)?3"[^>]*/>', "", svg)
    svg = re.sub(r'transform="translate\(([0-9]+)[0-9.]* 0\)"', r'x="\1"', svg)
    svg = svg.replace("DejaVuSans-Bold-", "b").replace("DejaVuSans-", "d")
    return re.sub(r"> <(?!g)", "><", re.sub(r"\s*\n\s*", " ", svg)).replace("> <g", ">\n<g").strip() + "\n"


def draw(rows: list[dict], theme: str) -> str:
    """Return the picture in one theme as SVG."""
    words, colour = texts(rows), THEMES[theme]
    groups = {key: members for key in list(words)[1:] if (members := [row for row in rows if group(row) == key])}
    height = TOP + ROW * len(rows) + HEAD * len(groups) + 30
    axes = Figure((WIDTH / 72, height / 72)).add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
    axes.axis("off")

    def text(x, y, words, ink="ink", size=13.5, align="left", weight="normal"):
        axes.text(x, y, words, color=colour[ink], size=size, ha=align, va="center_baseline", weight=weight)

    def mark(x, y, part):
        ink = colour[part.split()[-1]]
        axes.plot(x, y, "o" if part == "softmax" else "D", ms=7.5, mfc="none" if " " in part else ink, mec=ink, mew=1.5)

    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "attnlab", "font.family": "DejaVu Sans"}):
        text(4, 28, words["answer"], size=16.5)
        for part, left, right in (("softmax", -68, 0), ("linear", -52, 0), ("other linear", -11, 80)):
            mark(COLUMNS[part] + left, 78, part)
            text(COLUMNS[part] + right, 78, part, part.split()[-1], align="right")
        for x, label, side in ((232, "0%", "left"), (347, "better →", "center"), (462, "100%", "right")):
            text(x, 78, label, "faint", 11, side)
        y = TOP
        for key, members in groups.items():
            axes.hlines(y - 6, 4, WIDTH - 4, colour["line"], lw=1)
            text(4, y + 13, words[key], key if key in colour else "ink", 15)
            y += HEAD
            for row in members:
                (first, last, left, right), values = SCALES[row["unit"]], row["values"]
                old = all(value["older_harness"] for value in values)
                text(14, y, row["task"] + " †" * old)
                axes.hlines(y, left, right, colour["line"], lw=1)
                if row["unit"] != "%":
                    text(left - 5, y, first, "faint", 11, "right")
                    text(right + 5, y, f"{last} {row['unit']}", "faint", 11)
                for value in reversed(values):
                    shares = ((float(value[end]) - first) / (last - first) for end in ("low", "mean", "high"))
                    low, mean, high = (left + (right - left) * share for share in shares)
                    part = value["part"]
                    ink, at = part.split()[-1], y - 4 if part == "softmax" else y + 4
                    axes.hlines(at, low, high, colour[ink], lw=2.5)
                    mark(mean, at, part)
                    weight = "bold" if value["verdict"] == "better" or part == "softmax" == key else "normal"
                    number = f"{value['mean']}" + "†" * (value["older_harness"] and not old)
                    text(COLUMNS[part], y, number, ink, 13.5, "right", weight)
                    text(COLUMNS[part] + 6, y, value["mechanism"] if part == "other linear" else "", ink)
                y += ROW
        text(4, height - 14, "† measured before a change; being measured again", "faint", 12)
        written, metadata = StringIO(), {"Description": digest(), "Date": None, "Creator": None}
        axes.figure.savefig(written, format="svg", transparent=True, metadata=metadata)
    return smaller(written.getvalue())


if __name__ == "__main__":
    for each in THEMES:
        DATA.with_name(f"softmax_or_linear_{each}.svg").write_text(draw(load(), each))
