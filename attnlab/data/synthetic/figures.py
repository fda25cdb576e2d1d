"""Ten kinds of simple figures, drawn from a seed: at any position, large or small, bright or dim, with noise."""

import numpy as np

from attnlab.data.images.labelled import Labelled

CLASSES = ("disc", "ring", "square", "frame", "triangle", "diamond", "plus", "cross", "bar", "pole")
LINE = 0.34  # thickness of a line of rings and frames, and half the width of a bar, as a share of the radius


def figures(random: np.random.Generator, count: int, size: int, noise: float) -> Labelled:
    """Draws grayscale images of figures. The kinds are equally frequent, except for a remainder.

    Args:
      random: the generator.
      count: number of images.
      size: height and width in pixels.
      noise: standard deviation of the noise that is added to each pixel, for brightness in 0 … 1.

    Returns:
      The images [count size size 1], and the kind of each figure.
    """
    labels = random.permutation(np.arange(count, dtype=np.int32) % len(CLASSES))
    radius = size * random.uniform(0.22, 0.38, count)
    centre = random.uniform(radius, size - 1 - radius, (2, count))
    level = random.uniform(0.5, 1.0, count)
    pixel = np.arange(size)
    down, right = np.broadcast_arrays(pixel[:, None], pixel[None, :])
    drawn = np.empty((count, size, size), np.float32)
    for n in range(count):
        y, x = (down - centre[0, n]) / radius[n], (right - centre[1, n]) / radius[n]
        # The brightness of a pixel on the edge is proportional to the part of it that is inside.
        drawn[n] = level[n] * np.clip(0.5 - radius[n] * outside(CLASSES[labels[n]], x, y), 0, 1)
    drawn += noise * random.standard_normal(drawn.shape, np.float32)
    return Labelled(np.round(255 * np.clip(drawn, 0, 1)).astype(np.uint8)[..., None], labels)


def outside(kind: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns how far positions are outside of a figure of radius 1 around (0, 0); negative inside.

    The y axis points downwards.

    Args:
      kind: the kind of the figure, out of `CLASSES`.
      x: horizontal positions, in radii.
      y: vertical positions of the same shape, in radii.

    Returns:
      The distances, of the same shape, in radii.
    """
    round_, square = np.hypot(x, y) - 1, np.maximum(abs(x), abs(y)) - 0.85
    bar, pole = np.maximum(abs(x) - 1, abs(y) - LINE), np.maximum(abs(x) - LINE, abs(y) - 1)
    if kind in ("plus", "bar", "pole"):
        return {"plus": np.minimum(bar, pole), "bar": bar, "pole": pole}[kind]
    if kind == "cross":
        return outside("plus", (x + y) / np.sqrt(2), (x - y) / np.sqrt(2))
    if kind == "triangle":
        # Three edges, each half a radius from the centre; one corner points up.
        return np.maximum(y, (abs(x) * np.sqrt(3) - y) / 2) - 0.5
    if kind in ("ring", "frame"):
        edge = round_ if kind == "ring" else square
        return np.maximum(edge, -edge - LINE)
    return {"disc": round_, "square": square, "diamond": abs(x) + abs(y) - 1}[kind]
