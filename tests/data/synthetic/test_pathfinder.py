import numpy as np
import pytest
from scipy import ndimage

from attnlab.data.synthetic import pathfinder


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


@pytest.fixture(scope="module")
def drawn():
    """Returns images, large enough that curves keep well apart, and their labels."""
    return pathfinder.draw(generator(), 1200, 48, 8, 3)


def dots(images):
    """Returns row and column of the centres of the dots [N 2 2]. Nothing else is three pixels wide and high."""
    places = [np.argwhere(ndimage.minimum_filter(image, 3, mode="constant")) for image in images]
    return np.array([(place[0], place[-1]) for place in places])


def joined(image):
    """Returns whether the dots are connected once each bright pixel grows by one, which closes all gaps and more."""
    parts, _ = ndimage.label(ndimage.maximum_filter(image, 3), np.ones((3, 3)))
    (first, second) = dots([image])[0]
    return parts[tuple(first)] == parts[tuple(second)]


def test_half_are_joined_and_pixels_are_dark_or_bright(drawn):
    images, labels = drawn
    assert images.shape == (1200, 48, 48)
    assert images.dtype == np.uint8
    assert set(np.unique(images)) == {0, 255}
    assert labels.dtype == np.int32
    assert labels.sum() == 600
    assert {int(pathfinder.draw(generator(seed), 3, 24, 4, 1)[1].sum()) for seed in range(16)} == {1, 2}


def test_every_image_has_two_dots_and_the_curve_joins_those_that_are_joined(drawn):
    images, labels = drawn
    for image in images[:200]:
        assert ndimage.label(ndimage.minimum_filter(image, 3, mode="constant"), np.ones((3, 3)))[1] == 2
    said = np.array([joined(image) for image in images])
    assert said[labels == 1].all()
    # Growth also connects curves that come near each other.
    assert (~said[labels == 0]).mean() > 0.8


def test_a_curve_is_dashed(drawn):
    """Checks that an image without growth has many separate parts."""
    images, labels = drawn
    apart = [ndimage.label(image, np.ones((3, 3)))[1] for image in images[labels == 1]]
    assert np.mean(apart) > 10  # two curves of eight dashes and three of three, some of which touch


def auc(values, labels):
    """Returns the share of pairs (joined, not joined) in which the joined one has the larger value. Ties count half."""
    one, other = values[labels == 1][:, None], values[labels == 0]
    return float(((one > other) + (one == other) / 2).mean())


def test_simple_measures_do_not_predict_the_answer(drawn):
    images, labels = drawn
    at = dots(images)
    measures = {
        "bright pixels": images.sum(axis=(1, 2), dtype=np.int64),
        "distance of the dots": np.linalg.norm(at[:, 0] - at[:, 1], axis=1),
        "distance from the middle": np.abs(at - 23.5).mean(axis=(1, 2)),
        "bright rows": (images.sum(axis=2, dtype=np.int64) > 0).sum(axis=1),
        "bright around the dots": np.array([
            np.pad(image, 4)[row : row + 9, column : column + 9].sum(dtype=np.int64)
            for image, (row, column) in zip(images, at[:, 0], strict=True)
        ]),
        "parts": np.array([ndimage.label(image, np.ones((3, 3)))[1] for image in images]),
    }  # fmt: skip
    for name, values in measures.items():
        # Four standard deviations of the share if the classes do not differ: √((600+600+1)/(12·600·600)).
        assert abs(auc(values, labels) - 0.5) < 4 * 0.0167, name


def test_positions_of_the_dots_do_not_predict_the_answer():
    """Two positions belong to joined dots as often as to other dots. Thus learning positions does not help."""
    random, examples = np.random.default_rng(1), []
    w, b = random.standard_normal((4, 300)), random.uniform(0, 2 * np.pi, 300)
    for seed in (7, 8):
        images, labels = pathfinder.draw(generator(seed), 1200, 16, 3, 1)
        at = dots(images).reshape(-1, 4)
        one, other = (sorted(map(tuple, at[labels == label].tolist())) for label in (0, 1))
        assert one == other
        examples.append((np.cos((at - 7.5) / 4 @ w + b), 2.0 * labels - 1))
    (x, y), (unseen, answers) = examples
    learned = np.linalg.solve(x.T @ x + np.eye(300), x.T @ y)
    assert np.mean(np.sign(unseen @ learned) == answers) < 0.55


def test_a_linear_classifier_does_not_predict_the_answer():
    images, labels = pathfinder.draw(generator(5), 2000, 16, 3, 1)
    x, y = np.concatenate([images.reshape(2000, -1) / 255, np.ones((2000, 1))], axis=1), 2.0 * labels - 1
    w = np.linalg.solve(x[:1500].T @ x[:1500] + 30 * np.eye(257), x[:1500].T @ y[:1500])
    right = np.mean(np.sign(x[1500:] @ w) == y[1500:])
    assert abs(right - 0.5) < 4 * 0.0224


def between(images):
    """Returns [N 6]: 1, the distance of the dots, and per pixel of it the ink near their line, without the dots."""
    found = []
    for image, (one, other) in zip(images, dots(images), strict=True):
        ink = np.argwhere(image)
        ink = ink[(np.abs(ink - one).max(axis=1) > 1) & (np.abs(ink - other).max(axis=1) > 1)] - one
        far = np.linalg.norm(other - one)
        along, across = ink @ (other - one) / far, ink @ ((other - one)[::-1] * [-1, 1]) / far
        near = [((along > 0) & (along < far) & (np.abs(across) <= width)).sum() / far for width in (0.5, 1, 2, 3)]
        found.append([1, far, *near])
    return np.array(found)


@pytest.mark.parametrize(
    ("size", "dashes", "distractors", "least", "most"),
    [(12, 2, 0, 0.95, 1), (16, 3, 1, 0.9, 0.97), (32, 6, 3, 0.6, 0.85)],
)
def test_pixels_between_the_dots_predict_short_curves_and_long_ones_less(size, dashes, distractors, least, most):
    """Predicts by least squares on five numbers and their products. If this succeeds, no curve needs to be followed."""
    examples = []
    for seed in (1, 2):
        images, labels = pathfinder.draw(generator(seed), 1000, size, dashes, distractors)
        x = between(images)
        one, other = np.triu_indices(x.shape[1])
        examples.append((x[:, one] * x[:, other], 2.0 * labels - 1))
    (x, y), (unseen, answers) = examples
    right = np.mean(np.sign(unseen @ np.linalg.lstsq(x, y, rcond=None)[0]) == answers)
    assert least < right < most


def test_images_are_a_function_of_the_seed():
    one, same, other = (pathfinder.draw(generator(seed), 4, 24, 4, 1)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_curves_without_room_are_refused():
    words = r"images of 12 × 12 pixels have no room for curves of \[9, 9, 3\] dashes"
    with pytest.raises(ValueError, match=words):
        pathfinder.draw(generator(), 2, 12, 9, 1, patience=2)
