"""Attention maps with sliders over layer, head and example.

The script is written for this page. Treescope's `render_array`, which comes with Flax, was tried on the same maps and
does not meet the requirements of a page. It shows symbols only on hover and not along the axes, is wider than a phone,
shows nothing without scripts, and needs examples of equal length. Its script would also need a policy that allows every
inline script. This script is allowed by its hash and no other is. Without it the first picture remains: the last layer,
averaged over heads, which is also what is printed.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence

import numpy as np

from attnlab.lab.reporting.heatmap import CELL, LONGEST, breadth, compact, framed
from attnlab.lab.reporting.layout import scroll
from attnlab.lab.reporting.markup import Markup, tag
from attnlab.lab.runs.examples import Example

ROOM = 60_000  # characters that the weights of one variant may take in the page; one example is always included
STEPS = 1000  # weights are rounded to 1/1000


def map_viewer(examples: Sequence[Example], label: str) -> Markup:
    """Show the maps of a variant: the first example drawn, those that fit packed for the script, and the sliders."""
    kept = _kept(examples)
    layers, heads = examples[0].layers.shape[:2]
    sliders = [
        _slider("layer", 1, layers, layers),
        _slider("head", 0, heads if heads > 1 else 0, 0),
        _slider("example", 1, len(kept), 1),
    ]
    shown = [_example(*one, label, first=n == 0) for n, one in enumerate(kept)]
    left_out = len(examples) - len(kept)
    return tag(
        "div",
        tag("div", *sliders, class_="sliders", hidden=True),
        *shown,
        tag("p", f"{left_out} more examples are left out to limit the size of the page.", class_="quiet")
        if left_out
        else None,
        class_="lens",
        # The element is as wide as its widest map. What is next to it moves below if there is no room.
        style=f"flex-basis:min(100%,{max(breadth(one.source, one.target) for one, _ in kept)}px)",
        data_layers=layers,
        data_heads=heads,
    )


def _kept(examples: Sequence[Example]) -> list[tuple[Example, str]]:
    """Return the examples that fit, with their packed weights."""
    kept, room = [], ROOM
    for example in examples:
        packed = _packed(example.layers)
        if kept and len(packed) > room:
            break
        room -= len(packed)
        kept.append((example, packed))
    return kept


def _packed(layers: np.ndarray) -> str:
    """Pack weights `[L H T S]` as thousandths in little-endian 32-bit integers, deflated, in base 64."""
    rounded = np.rint(layers[:, :, :LONGEST, :LONGEST] * STEPS)
    whole = np.clip(rounded, -(2**31), 2**31 - 1).astype("<i4")
    return b64encode(zlib.compress(whole.tobytes(), 9)).decode()


def _example(example: Example, packed: str, label: str, first: bool) -> Markup:
    cells = compact(example.layers[-1].mean(0)) if first else None
    reads = [tag("bdi", _joined(example.source)), " → ", tag("bdi", _joined(example.target))]
    return tag(
        "div",
        tag("p", reads, class_="reads"),
        scroll(framed(cells, example.source, example.target, label), label),
        class_="example",
        data_weights=packed,
        hidden=not first,
    )


def _joined(symbols: Sequence[object]) -> str:
    """Join symbols: single characters without a space, words with spaces."""
    letters = [str(symbol) for symbol in symbols]
    return "".join(letters) if all(len(letter) < 2 for letter in letters[:-1]) else " ".join(letters)


def _slider(what: str, low: int, high: int, value: int) -> Markup | None:
    """Return a slider, or None if there is only one position."""
    if high <= low:
        return None
    span = {"min": low, "max": high, "value": value, "step": 1}
    # Without it, a browser would restore the slider's position after a reload.
    slide = tag("input", type="range", class_=what, autocomplete="off", **span)
    return tag("label", tag("span", what), slide, tag("output", ""))


SCRIPT = """
const unpack = async text => {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const whole = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new DataView(await new Response(whole).arrayBuffer());
};
const element = (name, attributes, ...children) => {
  const made = document.createElementNS(document.querySelector("svg").namespaceURI, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
};
const start = async lens => {
  const examples = [...lens.querySelectorAll("div.example")];
  const weights = await Promise.all(examples.map(one => unpack(one.dataset.weights)));
  const layers = +lens.dataset.layers, heads = +lens.dataset.heads;
  const inputs = Object.fromEntries([...lens.querySelectorAll("input")].map(input => [input.className, input]));
  const draw = () => {
    const at = (what, otherwise) => what in inputs ? +inputs[what].value : otherwise;
    const [layer, head, example] = [at("layer", layers), at("head", 0), at("example", 1)];
    const shown = {layer: `${layer} of ${layers}`, head: head ? `${head} of ${heads}` : `mean of ${heads}`,
      example: `${example} of ${examples.length}`};
    for (const what in inputs) {
      inputs[what].nextElementSibling.value = shown[what];
      inputs[what].setAttribute("aria-valuetext", shown[what]);
    }
    examples.forEach((one, n) => one.hidden = n !== example - 1);
    const texts = of => [...examples[example - 1].querySelectorAll(`${of} text`)].map(text => text.lastChild.data);
    const rows = texts(".rows"), columns = texts(".columns"), numbers = weights[example - 1];
    const meant = head ? [head - 1] : [...Array(heads).keys()];
    const place = (h, t, s) => 4 * ((((layer - 1) * heads + h) * rows.length + t) * columns.length + s);
    const weight = (t, s) => meant.reduce((sum, h) => sum + numbers.getInt32(place(h, t, s), true), 0)
      / STEPS / meant.length;
    const cells = rows.flatMap((row, t) => columns.map((column, s) => [row, t, column, s, weight(t, s)]));
    examples[example - 1].querySelector(".cells").replaceChildren(...cells.filter(cell => Math.abs(cell[4]) >= .002)
      .map(([row, t, column, s, value]) => element("rect", {x: CELL * s, y: CELL * t, width: CELL, height: CELL,
        "fill-opacity": Math.sqrt(Math.min(Math.abs(value), 1)).toFixed(2), class: value < 0 ? "less" : ""},
        element("title", {}, `${row} ← ${column}  ${value.toFixed(3)}`))));
  };
  lens.addEventListener("input", draw);
  lens.classList.add("live");
  lens.querySelector(".sliders").hidden = !Object.keys(inputs).length;
  draw();
};
if ("DecompressionStream" in window) document.querySelectorAll(".lens").forEach(start);
""".replace("CELL", str(CELL)).replace("STEPS", str(STEPS))
