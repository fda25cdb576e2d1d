import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnlab.tasks.vision import boxes
from attnlab.tasks.vision.boxes import area, centred, corners, giou, iou

# Sides are at least 1/16. All numbers are exact in binary, so that equal values compare equal.
SIDES = st.integers(0, 16).map(lambda n: n / 16)


def drawn(count):
    """Returns a strategy for boxes with an area above zero in a frame of 2 by 2."""
    place = arrays(np.float64, (count, 2), elements=SIDES)
    size = arrays(np.float64, (count, 2), elements=st.integers(1, 16).map(lambda n: n / 16))
    return st.tuples(place, size).map(lambda pair: np.concatenate([pair[0], pair[0] + pair[1]], axis=1))


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_areas_and_overlaps_by_hand(kind):
    a = kind([[0.0, 0.0, 2.0, 2.0]])
    b = kind(
        [[1.0, 1.0, 3.0, 3.0], [0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 1.0, 2.0], [2.0, 0.0, 4.0, 2.0], [3.0, 3.0, 4.0, 4.0]]
    )
    assert type(iou(a, b)) is type(a)
    np.testing.assert_allclose(area(b), [4, 4, 2, 4, 1])
    # The boxes overlap by 1 of 4 + 4 − 1, are equal, overlap by half, touch, and are separate.
    np.testing.assert_allclose(iou(a, b), [[1 / 7, 1, 1 / 2, 0, 0]], rtol=1e-6)
    # The hulls have areas 9, 4, 4, 8, 16, which gives 1/7 − 2/9, 1, 1/2, 0 − 0 and 0 − 11/16.
    np.testing.assert_allclose(giou(a, b), [[1 / 7 - 2 / 9, 1, 1 / 2, 0, -11 / 16]], rtol=1e-5)


def test_conversion_to_centred_boxes_and_back():
    np.testing.assert_array_equal(corners(np.array([[3.0, 2.0, 4.0, 2.0]])), [[1, 1, 5, 3]])
    np.testing.assert_array_equal(centred(np.array([[1.0, 1.0, 5.0, 3.0]])), [[3, 2, 4, 2]])


@given(drawn(3), drawn(2))
def test_properties_of_random_boxes(a, b):
    over, general = iou(a, b), giou(a, b)
    assert over.shape == general.shape == (3, 2)
    assert (over >= 0).all()
    assert (over <= 1).all()
    assert (general >= -1).all()
    assert (general <= over + 1e-15).all()
    np.testing.assert_array_equal(over, iou(b, a).T)
    np.testing.assert_array_equal(general, giou(b, a).T)
    np.testing.assert_array_equal(np.diag(giou(a, a)), 1)
    # The values do not depend on the unit of each side.
    stretch = np.array([64.0, 0.5, 64.0, 0.5])
    np.testing.assert_allclose(iou(a * stretch, b * stretch), over, rtol=1e-12)
    np.testing.assert_allclose(giou(a * stretch, b * stretch), general, rtol=1e-12)


@given(drawn(1), drawn(1))
def test_giou_equals_iou_for_nested_boxes(a, b):
    hull = np.concatenate([np.minimum(a, b)[:, :2], np.maximum(a, b)[:, 2:]], axis=1)
    np.testing.assert_allclose(giou(a, hull), iou(a, hull), rtol=1e-12)
    np.testing.assert_allclose(iou(a, hull), [area(a) / area(hull)], rtol=1e-12)


@pytest.mark.parametrize(
    "box", [[0.5, 0.5, 0.5, 0.5], [0.2, 0.1, 0.2, 0.9], [0.9, 0.9, 0.1, 0.1], [0.5, 0.5, 0.5 + 1e-7, 0.5 + 1e-7]]
)
def test_boxes_without_area_have_finite_gradients(box):
    first, second = jnp.array([box]), jnp.array([box, [0.0, 0.0, 1.0, 1.0]])
    value, (to_a, to_b) = jax.value_and_grad(lambda a, b: (iou(a, b) + giou(a, b)).sum(), (0, 1))(first, second)
    assert np.isfinite([value, *np.ravel(to_a), *np.ravel(to_b)]).all()
    np.testing.assert_allclose(iou(first, second), 0, atol=1e-12)


def test_gradients_move_disjoint_boxes_together():
    there = jnp.array([[0.6, 0.6, 0.8, 0.8]])
    toward = jax.grad(lambda a: giou(a, there).sum())(jnp.array([[0.1, 0.1, 0.3, 0.3]]))
    assert (toward[0, 2:] > 0).all()
    np.testing.assert_array_equal(jax.grad(lambda a: iou(a, there).sum())(jnp.array([[0.1, 0.1, 0.3, 0.3]])), 0)


def test_negligible_area_is_tiny():
    assert boxes.NOTHING <= 1e-12
