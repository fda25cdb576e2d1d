import numpy as np
import pytest

from attnlab.data.images.labelled import Labelled
from attnlab.data.images.sampling import augmented, divided, portion
from attnlab.data.io.files import DataError
from tests.data.images.test_labelled import labelled


def test_a_portion_has_every_class_and_depends_on_the_seed():
    labels = np.repeat([0, 1, 2], [100, 50, 3])
    rows = portion(labels, 0.1, 4)
    assert np.bincount(labels[rows]).tolist() == [10, 5, 1]
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, portion(labels, 0.1, 4))
    assert set(rows) != set(portion(labels, 0.1, 5))
    np.testing.assert_array_equal(portion(labels, 1.0, 5), np.arange(153))


def test_held_out_images_are_not_in_training():
    whole = Labelled(np.arange(40, dtype=np.uint8).reshape(40, 1, 1, 1), np.arange(40, dtype=np.int32) % 4)
    left, held = divided(whole, 0.2)
    assert np.bincount(held.labels).tolist() == [2, 2, 2, 2]
    both = np.concatenate([left.images, held.images]).ravel()
    assert sorted(both.tolist()) == list(range(40))
    np.testing.assert_array_equal(held.images.ravel() % 4, held.labels)
    with pytest.raises(DataError, match="class 1 has too few images"):
        divided(labelled([0, 0, 0, 1]), 0.1)


def test_shifting_and_flipping():
    image = np.zeros((3, 4, 1), np.uint8)
    image[1, 1:3, 0] = 7, 9
    many = np.broadcast_to(image, (200, 3, 4, 1))
    random = np.random.default_rng(0)
    np.testing.assert_array_equal(augmented(many, random, 0, False), many)
    found = {each.tobytes() for each in augmented(many, random, 1, False)}
    expected = set()
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            still = np.zeros((5, 6, 1), np.uint8)
            still[1 + down : 4 + down, 1 + right : 5 + right] = image
            expected.add(still[1:4, 1:5].tobytes())
    assert found == expected
    turned = augmented(many, random, 0, True)
    assert {each.tobytes() for each in turned} == {image.tobytes(), image[:, ::-1].tobytes()}
