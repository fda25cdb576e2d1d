import numpy as np
import pytest

from attnlab.data.images.labelled import Labelled, absent, agreed
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from tests.data.images.test_idx_files import drawn


def labelled(labels, shape=(4, 5, 1)):
    return Labelled(np.zeros((len(labels), *shape), np.uint8), np.array(labels, np.int32))


def test_parts_must_agree_in_size_and_classes():
    names = {"train": "a", "test": "b"}
    assert agreed({"train": labelled([0, 2]), "test": labelled([1])}, names) == 3
    with pytest.raises(
        DataError, match="b contains images of 4 × 6 × 1, and a images of 4 × 5 × 1; all images must have the same size"
    ):
        agreed({"train": labelled([0, 1]), "test": labelled([0], (4, 6, 1))}, names)
    with pytest.raises(DataError, match="b, image 2: label 3 is out of range; a has classes 0 … 2"):
        agreed({"train": labelled([0, 2]), "test": labelled([1, 3])}, names)


@pytest.mark.parametrize("lacking", [0, 1])
def test_classes_below_the_highest_that_training_lacks_are_noted(lacking):
    taught = [label for label in range(3) if label != lacking]
    parts = {"train": labelled(taught), "test": labelled([2, 1, 0])}
    assert agreed(parts, {"train": "a", "test": "b"}) == 3
    assert absent(parts, "abc") == (
        f"train: there is no image of 1 of 3 classes: {'abc'[lacking]}; a model cannot learn to predict them",
    )
    assert absent({"train": parts["test"], "test": parts["train"]}, "abc") == (
        f"test: there is no image of 1 of 3 classes: {'abc'[lacking]}",
    )


def test_images_of_one_class_are_refused():
    parts = {part: Labelled(drawn()[0][..., None], np.full(6, 3, np.int32)) for part in PARTS}
    with pytest.raises(DataError, match="mine: all images are of class 3; at least 2 classes are needed"):
        agreed(parts, dict.fromkeys(parts, "mine"))
