"""Boxes, and how far they lie on one another: for numpy's arrays and for jax's alike.

A box is (left, top, right, bottom), or (x, y, width, height) around its centre where it is called centred; in any unit.
"""

from typing import Any

# Areas up to it count as none: a quotient by less has a slope that float32 cannot hold.
NOTHING = 1e-12


def corners(centred: Any) -> Any:
    """(x, y, width, height) [... 4] as (left, top, right, bottom)."""
    middle, half = centred[..., :2], centred[..., 2:] / 2
    return centred.__array_namespace__().concat([middle - half, middle + half], axis=-1)


def centred(corners: Any) -> Any:
    """(left, top, right, bottom) [... 4] as (x, y, width, height)."""
    first, last = corners[..., :2], corners[..., 2:]
    return corners.__array_namespace__().concat([(first + last) / 2, last - first], axis=-1)


def area(boxes: Any) -> Any:
    """Of boxes [... 4], [...]; zero where right is left of left, or bottom above top."""
    sides = (boxes[..., 2:] - boxes[..., :2]).clip(min=0)
    return sides[..., 0] * sides[..., 1]


def iou(a: Any, b: Any) -> Any:
    """Intersection over union of boxes a [N 4] and b [M 4], [N M] in 0 … 1; 0 where there is no area.

    >>> import numpy as np
    >>> iou(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2], [2, 2, 3, 3]])).round(3).tolist()
    [[0.333, 0.0]]
    """
    return _overlap(*_pairs(a, b))[0]


def giou(a: Any, b: Any) -> Any:
    """IoU − (hull − union) / hull, [N M] in −1 … 1, the hull being the least box around both (Rezatofighi et al. 2019).

    It tells boxes apart that do not touch. 0 for two boxes on one point.
    """
    a, b = _pairs(a, b)
    over, union = _overlap(a, b)
    x = a.__array_namespace__()
    hull = area(x.concat([x.minimum(a[..., :2], b[..., :2]), x.maximum(a[..., 2:], b[..., 2:])], axis=-1))
    return over - _quotient(hull - union, hull)


def _pairs(a: Any, b: Any) -> tuple[Any, Any]:
    """Every a beside every b, [N M 4] each."""
    x, shape = a.__array_namespace__(), (a.shape[0], b.shape[0], 4)
    return x.broadcast_to(a[:, None, :], shape), x.broadcast_to(b[None, :, :], shape)


def _overlap(a: Any, b: Any) -> tuple[Any, Any]:
    """The intersection over the union, and the union, of boxes beside one another."""
    x = a.__array_namespace__()
    both = area(x.concat([x.maximum(a[..., :2], b[..., :2]), x.minimum(a[..., 2:], b[..., 2:])], axis=-1))
    union = area(a) + area(b) - both
    return _quotient(both, union), union


def _quotient(part: Any, whole: Any) -> Any:
    """Part / whole, and zero with zero gradient where the whole is nothing."""
    x = whole.__array_namespace__()
    return x.where(whole > NOTHING, part, 0.0) / x.where(whole > NOTHING, whole, 1.0)
