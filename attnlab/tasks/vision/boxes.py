"""Boxes and their overlaps, for numpy arrays and JAX arrays.

A box is (left, top, right, bottom). A centred box is (x, y, width, height) with its centre at (x, y). Any unit will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    import jax

Arrays = TypeVar("Arrays", np.ndarray, "jax.Array")

# Areas up to this count as zero: the gradient of a quotient by a smaller area overflows float32.
NOTHING = 1e-12


def corners(centred: Arrays) -> Arrays:
    """Converts centred boxes (x, y, width, height) [... 4] to (left, top, right, bottom)."""
    middle, half = centred[..., :2], centred[..., 2:] / 2
    return centred.__array_namespace__().concat([middle - half, middle + half], axis=-1)


def centred(corners: Arrays) -> Arrays:
    """Converts boxes (left, top, right, bottom) [... 4] to (x, y, width, height)."""
    first, last = corners[..., :2], corners[..., 2:]
    return corners.__array_namespace__().concat([(first + last) / 2, last - first], axis=-1)


def area(boxes: Arrays) -> Arrays:
    """Returns the areas [...] of boxes [... 4]. The area is zero if right is left of left, or bottom above top."""
    sides = (boxes[..., 2:] - boxes[..., :2]).clip(min=0)
    return sides[..., 0] * sides[..., 1]


def iou(a: Arrays, b: Arrays) -> Arrays:
    """Returns the intersection over union of boxes a [N 4] and b [M 4], [N M] in 0 … 1.

    It is 0 if the union has no area.

    >>> import numpy as np
    >>> iou(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2], [2, 2, 3, 3]])).round(3).tolist()
    [[0.333, 0.0]]
    """
    return _overlap(*_pairs(a, b))[0]


def giou(a: Arrays, b: Arrays) -> Arrays:
    """Returns IoU − (hull − union) / hull, [N M] in −1 … 1 (Rezatofighi et al. 2019).

    The hull is the smallest box around both boxes. Unlike the IoU, the value also depends on the distance of boxes that
    do not overlap. It is 0 for two boxes on one point.
    """
    a, b = _pairs(a, b)
    over, union = _overlap(a, b)
    x = a.__array_namespace__()
    hull = area(x.concat([x.minimum(a[..., :2], b[..., :2]), x.maximum(a[..., 2:], b[..., 2:])], axis=-1))
    return over - _quotient(hull - union, hull)


def _pairs(a: Arrays, b: Arrays) -> tuple[Arrays, Arrays]:
    """Returns every combination of a and b, [N M 4] each."""
    x, shape = a.__array_namespace__(), (a.shape[0], b.shape[0], 4)
    return x.broadcast_to(a[:, None, :], shape), x.broadcast_to(b[None, :, :], shape)


def _overlap(a: Arrays, b: Arrays) -> tuple[Arrays, Arrays]:
    """Returns the intersection over union, and the union, of corresponding boxes."""
    x = a.__array_namespace__()
    both = area(x.concat([x.maximum(a[..., :2], b[..., :2]), x.minimum(a[..., 2:], b[..., 2:])], axis=-1))
    union = area(a) + area(b) - both
    return _quotient(both, union), union


def _quotient(part: Arrays, whole: Arrays) -> Arrays:
    """Returns part / whole, or zero with zero gradient if the whole is nearly zero."""
    x = whole.__array_namespace__()
    return x.where(whole > NOTHING, part, 0.0) / x.where(whole > NOTHING, whole, 1.0)
