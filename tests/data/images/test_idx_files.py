import gzip

import numpy as np
import pytest

from attnlab.data.images import idx_files
from attnlab.data.io.files import DataError

KINDS = {"uint8": 8, "int8": 9, "int16": 11, "float32": 13}


def idx(path, array, packed=False):
    """Writes an IDX file, the format of MNIST."""
    array = np.asarray(array)
    head = bytes([0, 0, KINDS[array.dtype.name], array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = head + array.astype(array.dtype.newbyteorder(">")).tobytes()
    path.write_bytes(gzip.compress(content) if packed else content)


def drawn(count=6, shape=(4, 5), seed=0):
    """Returns random images and the labels 0 1 2 0 1 2 …"""
    random = np.random.default_rng(seed)
    return random.integers(256, size=(count, *shape), dtype=np.uint8), np.arange(count, dtype=np.uint8) % 3


def written(folder, start="train", packed=False, **more):
    """Writes a file of images and a file of labels. Returns the name of the file of images."""
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
        idx_files.read_user_images(name, "train"),
        idx_files.read_user_images(str(tmp_path), "train"),
        idx_files.read_user_images(name, "test"),
    ):
        np.testing.assert_array_equal(found.images, pixels[..., None])
        np.testing.assert_array_equal(found.labels, labels)
        assert (found.images.dtype, found.labels.dtype) == (np.uint8, np.int32)


def test_a_folder_holds_a_file_for_each_part_a_plain_one_before_a_packed_one(tmp_path):
    for n, (start, part) in enumerate({"train": "train", "val": "valid", "t10k": "test"}.items()):
        written(tmp_path, start, packed=True, seed=9)
        written(tmp_path, start, seed=n)
        np.testing.assert_array_equal(idx_files.read_user_images(str(tmp_path), part).images[..., 0], drawn(seed=n)[0])
    written(tmp_path, "test")
    with pytest.raises(DataError, match=r"contains several files test-images… or t10k-images…: t10k-images.*, test-im"):
        idx_files.read_user_images(str(tmp_path), "test")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(
        DataError, match=r"contains no IDX file train-images…; labels are read from .*; found: nothing$"
    ):
        idx_files.read_user_images(str(tmp_path), "train")
    name = written(tmp_path)
    with pytest.raises(
        DataError, match=r"contains no IDX file test-images… or t10k-images…; .*; found: train-images[^,]*$"
    ):
        idx_files.read_user_images(str(tmp_path), "test")
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(
        DataError, match=r"has no labels; expected train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz in the same"
    ):
        idx_files.read_user_images(name, "train")
    with pytest.raises(DataError, match="gone cannot be read: No such file"):
        idx_files.read_user_images(str(tmp_path / "gone"), "train")
    idx(tmp_path / "digits", drawn()[0])
    with pytest.raises(DataError, match="digits: expected a file name with 'images'; labels"):
        idx_files.read_user_images(str(tmp_path / "digits"), "train")


@pytest.mark.parametrize(
    ("names", "there"),
    [
        (["1.png", "2.JPG"], "1.png, 2.JPG"),
        (["cat/1.png", "dog/2.jpeg"], "cat, dog"),
        ([f"train-images-{n}.png" for n in range(9)], "train-images-0.png, .*, train-images-7.png, …"),
    ],
)
def test_a_folder_of_pictures_is_refused_naming_the_expected_files(tmp_path, names, there):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    said = (
        "contains no IDX file train-images…; labels are read from the same name with 'labels' instead of 'images'; "
        rf"found: {there}$"
    )
    with pytest.raises(DataError, match=said):
        idx_files.read_user_images(str(tmp_path), "train")
    assert not idx_files.holds(str(tmp_path), "train")


def test_a_file_that_is_cut_says_the_bytes_expected_and_found(tmp_path):
    name = written(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(
        DataError, match=r"contains an array of uint8 with shape \(6, 4, 5\): 120 bytes expected, 113 found"
    ):
        idx_files.read_user_images(name, "train")


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
        idx_files.read_user_images(str(tmp_path / "images-idx3"), "train")


def test_colour_has_three_channels(tmp_path):
    idx(tmp_path / "train-images-idx4-ubyte", drawn(shape=(4, 5, 3))[0])
    idx(tmp_path / "train-labels-idx1-ubyte", drawn()[1])
    assert idx_files.read_user_images(str(tmp_path), "train").images.shape == (6, 4, 5, 3)
