import numpy as np
import pytest

from attnlab.data.synthetic.figures import CLASSES, figures
from attnlab.tasks.vision.features import Features

TRAIN = figures(np.random.default_rng(0), 400, 12, 0.05)


@pytest.fixture(scope="module")
def features():
    return Features(TRAIN, len(CLASSES), 60)


def test_classifier_learns_and_features_have_unit_variance(features):
    found, chances = features(TRAIN.images / np.float32(255))
    assert found.shape == (400, 64)
    assert found.dtype == chances.dtype == np.float64
    assert found.min() >= 0
    assert found.var(axis=0).mean() == pytest.approx(1, rel=1e-4)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)
    # Chance is an accuracy of 10 in 100.
    assert np.mean(chances.argmax(axis=1) == TRAIN.labels) > 0.5


def test_features_are_deterministic(features):
    some = TRAIN.images[:3] / np.float32(255)
    for a, b in zip(Features(TRAIN, len(CLASSES), 60)(some), features(some), strict=True):
        np.testing.assert_array_equal(a, b)


def test_features_do_not_depend_on_the_batch(features):
    some = TRAIN.images[:7] / np.float32(255)
    np.testing.assert_allclose(features(some)[0][4:5], features(some[4:5])[0], rtol=1e-5)
