import gzip

import numpy as np
import pytest
from PIL import Image

from attnlab.data.images import images
from attnlab.data.images.images import Labelled
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS

KINDS = {"uint8": 8, "int8": 9, "int16": 11, "float32": 13}


def idx(path, array, packed=False):
    """Write an IDX file, as MNIST's are."""
    array = np.asarray(array)
    head = bytes([0, 0, KINDS[array.dtype.name], array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = head + array.astype(array.dtype.newbyteorder(">")).tobytes()
    path.write_bytes(gzip.compress(content) if packed else content)


def drawn(count=6, shape=(4, 5), seed=0):
    """Images and labels: 0 1 2 0 1 2 …"""
    random = np.random.default_rng(seed)
    return random.integers(256, size=(count, *shape), dtype=np.uint8), np.arange(count, dtype=np.uint8) % 3


def written(folder, start="train", packed=False, **more):
    """A pair of files, and the name of that of images."""
    pixels, labels = drawn(**more)
    end = ".gz" if packed else ""
    idx(folder / f"{start}-images-idx3-ubyte{end}", pixels, packed)
    idx(folder / f"{start}-labels-idx1-ubyte{end}", labels, packed)
    return str(folder / f"{start}-images-idx3-ubyte{end}")


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_and_a_folder_of_it_are_the_same(tmp_path, packed):
    pixels, labels = drawn()
    name = written(tmp_path, packed=packed)
    for found in (
        images.read_user_images(name, "train"),
        images.read_user_images(str(tmp_path), "train"),
        images.read_user_images(name, "test"),
    ):
        np.testing.assert_array_equal(found.images, pixels[..., None])
        np.testing.assert_array_equal(found.labels, labels)
        assert (found.images.dtype, found.labels.dtype) == (np.uint8, np.int32)


def test_a_folder_holds_a_file_for_each_part_a_plain_one_before_a_packed_one(tmp_path):
    for n, (start, part) in enumerate({"train": "train", "val": "valid", "t10k": "test"}.items()):
        written(tmp_path, start, packed=True, seed=9)
        written(tmp_path, start, seed=n)
        np.testing.assert_array_equal(images.read_user_images(str(tmp_path), part).images[..., 0], drawn(seed=n)[0])
    written(tmp_path, "test")
    with pytest.raises(DataError, match=r"contains several files test-images… or t10k-images…: t10k-images.*, test-im"):
        images.read_user_images(str(tmp_path), "test")


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(
        DataError, match=r"contains no IDX file train-images…; labels are read from .*; found: nothing$"
    ):
        images.read_user_images(str(tmp_path), "train")
    name = written(tmp_path)
    with pytest.raises(
        DataError, match=r"contains no IDX file test-images… or t10k-images…; .*; found: train-images[^,]*$"
    ):
        images.read_user_images(str(tmp_path), "test")
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(
        DataError, match=r"has no labels; expected train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz in the same"
    ):
        images.read_user_images(name, "train")
    with pytest.raises(DataError, match="gone cannot be read: No such file"):
        images.read_user_images(str(tmp_path / "gone"), "train")
    idx(tmp_path / "digits", drawn()[0])
    with pytest.raises(DataError, match="digits: expected a file name with 'images'; labels"):
        images.read_user_images(str(tmp_path / "digits"), "train")


@pytest.mark.parametrize(
    ("names", "there"),
    [
        (["1.png", "2.JPG"], "1.png, 2.JPG"),
        (["cat/1.png", "dog/2.jpeg"], "cat, dog"),
        ([f"train-images-{n}.png" for n in range(9)], "train-images-0.png, .*, train-images-7.png, …"),
    ],
)
def test_a_folder_of_pictures_is_told_that_idx_files_are_read_and_of_which_names(tmp_path, names, there):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    said = (
        "contains no IDX file train-images…; labels are read from the same name with 'labels' instead of 'images'; "
        rf"found: {there}$"
    )
    with pytest.raises(DataError, match=said):
        images.read_user_images(str(tmp_path), "train")
    assert not images.holds(str(tmp_path), "train")


def test_a_file_that_is_cut_says_the_bytes_expected_and_found(tmp_path):
    name = written(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(
        DataError, match=r"contains an array of uint8 with shape \(6, 4, 5\): 120 bytes expected, 113 found"
    ):
        images.read_user_images(name, "train")


@pytest.mark.parametrize(
    ("pixels", "labels", "said"),
    [
        (drawn()[0], drawn(5)[1], "images-idx3 contains 6 images, but .*labels-idx1 contains 5 labels"),
        (
            drawn()[0],
            np.array([0, 1, 2, -1, 0, 1], np.int8),
            "label 4 is -1, which is out of range; classes are 0 … 999",
        ),
        (
            drawn()[0],
            np.array([0, 1000, 2, 1, 0, 1], np.int16),
            "label 2 is 1000, which is out of range; classes are 0 … 999",
        ),
        (drawn()[0], np.zeros(6, np.float32), r"contains float32 with shape \(6,\); expected labels as 1-D integers"),
        (
            drawn()[0],
            np.zeros((6, 1), np.uint8),
            r"contains uint8 with shape \(6, 1\); expected labels as 1-D integers",
        ),
        (
            drawn()[0].astype(np.float32),
            drawn()[1],
            r"contains float32 with shape \(6, 4, 5\); expected images as uint8",
        ),
        (drawn()[0][0], drawn()[1], r"contains uint8 with shape \(4, 5\); expected images as uint8"),
        (drawn(shape=(4, 5, 2))[0], drawn()[1], r"contains uint8 with shape \(6, 4, 5, 2\); expected images as uint8"),
        (drawn(0)[0], drawn(0)[1], r"contains no images; its shape is \(0, 4, 5\)"),
        (drawn(shape=(0, 5))[0], drawn()[1], r"contains no images; its shape is \(6, 0, 5\)"),
    ],
)
def test_images_and_labels_that_do_not_fit_are_refused(tmp_path, pixels, labels, said):
    idx(tmp_path / "images-idx3", pixels)
    idx(tmp_path / "labels-idx1", labels)
    with pytest.raises(DataError, match=said):
        images.read_user_images(str(tmp_path / "images-idx3"), "train")


def test_colour_has_three_channels(tmp_path):
    idx(tmp_path / "train-images-idx4-ubyte", drawn(shape=(4, 5, 3))[0])
    idx(tmp_path / "train-labels-idx1-ubyte", drawn()[1])
    assert images.read_user_images(str(tmp_path), "train").images.shape == (6, 4, 5, 3)


def labelled(labels, shape=(4, 5, 1)):
    return Labelled(np.zeros((len(labels), *shape), np.uint8), np.array(labels, np.int32))


def test_parts_must_agree_in_size_and_classes():
    names = {"train": "a", "test": "b"}
    assert images.agreed({"train": labelled([0, 2]), "test": labelled([1])}, names) == 3
    with pytest.raises(
        DataError, match="b contains images of 4 × 6 × 1, and a images of 4 × 5 × 1; all images must have the same size"
    ):
        images.agreed({"train": labelled([0, 1]), "test": labelled([0], (4, 6, 1))}, names)
    with pytest.raises(DataError, match="b, image 2: label 3 is out of range; a has classes 0 … 2"):
        images.agreed({"train": labelled([0, 2]), "test": labelled([1, 3])}, names)


@pytest.mark.parametrize("lacking", [0, 1])
def test_classes_below_the_highest_that_training_lacks_are_noted(lacking):
    taught = [label for label in range(3) if label != lacking]
    parts = {"train": labelled(taught), "test": labelled([2, 1, 0])}
    assert images.agreed(parts, {"train": "a", "test": "b"}) == 3
    assert images.absent(parts, "abc") == (
        f"train: there is no image of 1 of 3 classes: {'abc'[lacking]}; a model cannot learn to predict them",
    )
    assert images.absent({"train": parts["test"], "test": parts["train"]}, "abc") == (
        f"test: there is no image of 1 of 3 classes: {'abc'[lacking]}",
    )


def test_a_portion_is_of_every_class_and_the_seeds_own():
    labels = np.repeat([0, 1, 2], [100, 50, 3])
    rows = images.portion(labels, 0.1, 4)
    assert np.bincount(labels[rows]).tolist() == [10, 5, 1]
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, images.portion(labels, 0.1, 4))
    assert set(rows) != set(images.portion(labels, 0.1, 5))
    np.testing.assert_array_equal(images.portion(labels, 1.0, 5), np.arange(153))


def test_what_is_held_out_is_not_trained_on():
    whole = Labelled(np.arange(40, dtype=np.uint8).reshape(40, 1, 1, 1), np.arange(40, dtype=np.int32) % 4)
    left, held = images.divided(whole, 0.2)
    assert np.bincount(held.labels).tolist() == [2, 2, 2, 2]
    both = np.concatenate([left.images, held.images]).ravel()
    assert sorted(both.tolist()) == list(range(40))
    np.testing.assert_array_equal(held.images.ravel() % 4, held.labels)
    with pytest.raises(DataError, match="class 1 has too few images"):
        images.divided(labelled([0, 0, 0, 1]), 0.1)


def test_moving_and_turning():
    image = np.zeros((3, 4, 1), np.uint8)
    image[1, 1:3, 0] = 7, 9
    many = np.broadcast_to(image, (200, 3, 4, 1))
    random = np.random.default_rng(0)
    np.testing.assert_array_equal(images.augmented(many, random, 0, False), many)
    found = {each.tobytes() for each in images.augmented(many, random, 1, False)}
    expected = set()
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            still = np.zeros((5, 6, 1), np.uint8)
            still[1 + down : 4 + down, 1 + right : 5 + right] = image
            expected.add(still[1:4, 1:5].tobytes())
    assert found == expected
    turned = images.augmented(many, random, 0, True)
    assert {each.tobytes() for each in turned} == {image.tobytes(), image[:, ::-1].tobytes()}


def test_images_of_one_class_are_refused():
    parts = {part: Labelled(drawn()[0][..., None], np.full(6, 3, np.int32)) for part in PARTS}
    with pytest.raises(DataError, match="mine: all images are of class 3; at least 2 classes are needed"):
        images.agreed(parts, dict.fromkeys(parts, "mine"))


def test_a_picture_in_a_file(tmp_path):
    pixels = drawn(1, (4, 5, 3))[0][0]
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(images.read(str(tmp_path / "a.png"), (4, 5, 3)), pixels)
    assert images.read(str(tmp_path / "a.png"), (4, 5, 1)).shape == (4, 5, 1)
    with pytest.raises(DataError, match=r"a.png has 4 × 5 pixels; expected 5 × 4"):
        images.read(str(tmp_path / "a.png"), (5, 4, 1))
    (tmp_path / "b.png").write_bytes(b"no picture")
    for name, words in {
        "b.png": "is damaged or not a JPEG or PNG",
        "gone.png": "No such file",
        "": "Is a directory",
    }.items():
        with pytest.raises(DataError, match=words):
            images.read(str(tmp_path / name), (4, 5, 1))


def test_fashion_mnist(published):
    published("fashion_mnist")
    parts = images.fashion()
    assert {part: len(labels) for part, (_, labels) in parts.items()} == {"train": 60_000, "test": 10_000}
    for part, (pixels, labels) in parts.items():
        assert pixels.shape[1:] == (28, 28, 1)
        assert np.bincount(labels).tolist() == [len(labels) // 10] * 10, part
    assert len(images.CLASSES) == 10
