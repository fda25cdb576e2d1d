import numpy as np
import pytest
from PIL import Image

from attnlab.data.images import inference, listing, picture_parts
from attnlab.data.io.files import DataError


def put(root, *names, size=(4, 5), mode="L", seed=0):
    """Writes a picture of random pixels under each name, and returns the pixels by name."""
    draw, found = np.random.default_rng(seed), {}
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        found[name] = draw.integers(256, size=(*size, 3) if mode == "RGB" else size, dtype=np.uint8)
        Image.fromarray(found[name]).save(root / name)
    return found


def read(train, held=0.25, **more):
    places = picture_parts.places({"train": str(train), **{part: str(path) for part, path in more.items()}})
    return picture_parts.read(places, held)


def classes(root, count=4, kinds=("cat", "dog"), **more):
    return put(root, *(f"{kind}/{n}.png" for kind in kinds for n in range(count)), **more)


def test_subfolders_are_classes_and_validation_and_test_are_held_out_of_them(tmp_path):
    pixels = classes(tmp_path, kinds=("dog", "cat"))
    found = read(tmp_path)
    assert found.classes == ("cat", "dog")
    # Every class gives one picture to the test part and one to the validation part.
    assert {part: len(names) for part, names in found.names.items()} == {"train": 4, "test": 2, "valid": 2}
    assert sorted(name for names in found.names.values() for name in names) == sorted(pixels)
    for part, names in found.names.items():
        for image, label, name in zip(*found.images[part], names, strict=True):
            np.testing.assert_array_equal(image[..., 0], pixels[name])
            assert found.classes[label] == name.split("/")[0]
        assert found.images[part].labels.dtype == np.int32
    assert found.notes == (
        f"{tmp_path}: 2 of 8 pictures, 0.25 of every class, are the test images, because there are no others",
    )


@pytest.mark.parametrize("valid", ["valid", "val"])
def test_a_folder_may_be_divided_into_parts(tmp_path, valid):
    for seed, part in enumerate(("train", valid, "test")):
        classes(tmp_path / part, count=seed + 1, seed=seed)
    found = read(tmp_path)
    assert {part: len(labels) for part, (_, labels) in found.images.items()} == {"train": 2, "valid": 4, "test": 6}
    assert found.notes == ()
    # A path that is given for a part takes precedence over a subfolder. It may itself contain a folder of the part.
    classes(tmp_path / "other" / "test", count=5)
    (tmp_path / "other" / "train").mkdir()
    parts = picture_parts.places({"train": str(tmp_path / "train"), "test": str(tmp_path / "other")})
    assert parts == {"train": tmp_path / "train", "test": tmp_path / "other" / "test"}


def test_without_a_test_folder_the_test_is_held_out_and_the_validation_is_read(tmp_path):
    classes(tmp_path / "train")
    classes(tmp_path / "val", count=1, seed=1)
    assert {part: len(names) for part, names in read(tmp_path).names.items()} == {"train": 6, "valid": 2, "test": 2}


def test_a_class_may_be_named_as_a_part(tmp_path):
    classes(tmp_path, kinds=("control", "test"))
    assert read(tmp_path).classes == ("control", "test")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["train/a/1.png", "valid/a/1.png", "val/a/1.png"], "contains several folders for one part: valid, val"),
        (["train/1.png", "test/1.png"], r"train contains neither an IDX file .*; found: 1\.png$"),
    ],
)
def test_a_folder_that_is_not_quite_divided_into_parts_is_refused(tmp_path, names, said):
    put(tmp_path, *names)
    with pytest.raises(DataError, match=said):
        read(tmp_path)


def test_folders_that_are_not_read_are_named(tmp_path):
    for name in ("train", "test", "runs", "validation"):
        classes(tmp_path / name)
    assert list(picture_parts.places({"train": str(tmp_path)})) == ["train", "test"]
    said = f"{tmp_path}: not read: runs, validation; expected only train, valid (or val) and test"
    assert picture_parts.unread(str(tmp_path)) == (said,)
    assert picture_parts.unread(str(tmp_path / "train")) == ()


def test_a_table_has_paths_and_classes(tmp_path):
    pixels = put(tmp_path, "a.png", "b.png", "in/c.png", "in/d.png")
    (tmp_path / "train.tsv").write_text("in/c.png\tno\nb.png\tyes\r\n\na.png\tno\n")
    (tmp_path / "test.tsv").write_text("in/d.png\tyes\n")
    found = read(tmp_path / "train.tsv", valid=tmp_path / "test.tsv", test=tmp_path / "test.tsv")
    assert found.classes == ("no", "yes")
    assert found.names["train"] == ["in/c.png", "b.png", "a.png"]
    assert found.images["train"].labels.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(
        found.images["train"].images[..., 0], [pixels[name] for name in ("in/c.png", "b.png", "a.png")]
    )


def test_images_are_gray_only_if_all_parts_are(tmp_path):
    pixels = classes(tmp_path / "train")
    classes(tmp_path / "test", count=1)
    assert read(tmp_path).images["train"].images.shape == (6, 4, 5, 1)
    colours = put(tmp_path, "test/cat/0.png", mode="RGB")["test/cat/0.png"]
    found = read(tmp_path)
    assert {part: images.shape[1:] for part, (images, _) in found.images.items()} == dict.fromkeys(
        ("train", "valid", "test"), (4, 5, 3)
    )
    np.testing.assert_array_equal(found.images["test"].images[0], colours)
    for image, name in zip(found.images["train"].images, found.names["train"], strict=True):
        for channel in range(3):
            np.testing.assert_array_equal(image[..., channel], pixels[name])


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_all_pictures_are_read_as_one_alone_is(tmp_path, mode):
    classes(tmp_path, mode="RGB", seed=1)
    for path in tmp_path.rglob("*.png"):
        Image.open(path).convert(mode).save(path)
    found = read(tmp_path)
    alone, _ = inference.pictures(str(tmp_path), found.images["train"].images.shape[1:], found.classes)
    assert found.images["train"].images.shape[3] == (1 if mode in ("1", "L", "LA") else 3)
    whole = np.concatenate([found.images[part].images for part in ("train", "valid", "test")])
    assert sorted(map(bytes, whole)) == sorted(map(bytes, alone.images))


def test_the_order_in_which_a_folder_is_listed_does_not_matter(tmp_path):
    """Files that are created and listed in another order are the same data."""
    classes(tmp_path / "one")
    for path in sorted((tmp_path / "one").rglob("*.png"), reverse=True):
        other = tmp_path / "other" / path.relative_to(tmp_path / "one")
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(path.read_bytes())
    one, other = read(tmp_path / "one"), read(tmp_path / "other")
    assert one.names == other.names
    for part, (images, labels) in one.images.items():
        np.testing.assert_array_equal(images, other.images[part].images)
        np.testing.assert_array_equal(labels, other.images[part].labels)


def test_thousands_of_pictures(tmp_path):
    for kind in "ab":
        classes(tmp_path, count=1, kinds=kind, size=(2, 2))
        for n in range(1, 1500):
            (tmp_path / kind / f"{n}.png").hardlink_to(tmp_path / kind / "0.png")
    found = read(tmp_path)
    assert {part: len(labels) for part, (_, labels) in found.images.items()} == {
        "train": 1688,
        "test": 750,
        "valid": 562,
    }


def test_other_files_are_ignored_and_named_and_hidden_ones_are_not(tmp_path):
    classes(tmp_path)
    (tmp_path / "cat" / "Thumbs.db").write_text("x")
    (tmp_path / "dog" / ".DS_Store").write_text("x")
    (tmp_path / ".git").mkdir()
    assert read(tmp_path).notes[0] == f"{tmp_path}: 1 file is ignored, not PNG or JPEG: cat/Thumbs.db"
    (tmp_path / "README").write_text("x")
    assert read(tmp_path).notes[0] == f"{tmp_path}: 2 files are ignored, not PNG or JPEG: README, cat/Thumbs.db"


def damaged(root):
    path = root / "dog" / "1.png"
    path.write_bytes(path.read_bytes()[:50])


def link(root, name, target):
    (root / name).symlink_to(target)


BAD = {
    "another size": (lambda root: put(root, "dog/x.png", size=(5, 4)), r"dog/x\.png has 5 × 4 pixels, but .*cat/"),
    "cut": (damaged, r"dog/1\.png is damaged or not a JPEG or PNG"),
    "no picture": (lambda root: (root / "dog" / "1.png").write_text("x"), r"dog/1\.png is damaged or not a JPEG or"),
    "an empty class": (lambda root: (root / "eel").mkdir(), r"eel contains no PNG or JPEG files; add pictures of this"),
    "a stray picture": (lambda root: put(root, "x.png"), r"/x\.png: the picture has no class; expected a subfolder na"),
    "too deep": (lambda root: put(root, "dog/in/x.png"), r"dog/in/x\.png is nested too deeply"),
    "a loop": (lambda root: link(root, "dog/up", root), r"dog/up is a link to .*, which contains the link"),
    "a link to itself": (
        lambda root: link(root, "dog/x.png", root / "dog" / "x.png"),
        r"dog/x\.png cannot be read: To",
    ),
    "a broken link": (lambda root: link(root, "dog/x.png", root / "gone"), r"dog/x\.png cannot be read: No such file"),
    "a class of one": (
        lambda root: put(root, "eel/1.png"),
        r"class eel has too few images to hold out 0\.25 of them fo",
    ),
    "no UTF-8": (lambda root: put(root, "dog/\udce9.png"), r"contains 'dog/\\udce9\.png', whose name is not UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_folders_that_cannot_be_learned_from_are_refused_in_one_line(tmp_path, name):
    change, said = BAD[name]
    classes(tmp_path)
    change(tmp_path)
    with pytest.raises(DataError, match=said) as error:
        read(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("names", "found"),
    [([], "nothing"), (["1.png", "2.png"], r"1\.png, 2\.png"), (["cat/1.gif", "dog/1.gif"], r"cat/1\.gif, dog/1\.gif")],
)
def test_a_folder_of_neither_form_is_refused_with_both(tmp_path, names, found):
    put(tmp_path, *names)
    said = "contains neither an IDX file train-images… nor a subfolder of PNG or JPEG files for each class; found: "
    with pytest.raises(DataError, match=said + found):
        read(tmp_path)


def test_one_class_and_very_many_are_refused(tmp_path, monkeypatch):
    classes(tmp_path / "one", kinds=["cat"])
    with pytest.raises(DataError, match="one: all images are of class cat; at least 2 classes are needed"):
        read(tmp_path / "one")
    monkeypatch.setattr(picture_parts, "MOST", 2)
    classes(tmp_path / "many", kinds="abc")
    with pytest.raises(DataError, match="many has 3 classes; at most 2 are supported"):
        read(tmp_path / "many")


def test_classes_of_other_parts_must_occur_in_training_but_need_not_be_complete(tmp_path):
    classes(tmp_path / "train")
    classes(tmp_path / "test", kinds=["cat"])
    (tmp_path / "test" / "dog").mkdir()
    assert set(read(tmp_path).images["test"].labels.tolist()) == {0}
    put(tmp_path, "test/eel/1.png")
    with pytest.raises(DataError, match=r"eel/1\.png: class 'eel' is not one of the 2 classes of training: cat, dog"):
        read(tmp_path)
    with pytest.raises(DataError, match=r"eel contains no subfolder of PNG or JPEG files for each class; found: 1"):
        read(tmp_path, test=tmp_path / "test" / "eel")


@pytest.mark.parametrize("end", ["", "\t", "\t "])
def test_a_line_of_a_table_for_training_has_a_class(tmp_path, end):
    put(tmp_path, "a.png", "b.png")
    (tmp_path / "a.tsv").write_text(f"a.png\tyes\nb.png{end}\n")
    with pytest.raises(DataError, match=r"a\.tsv, line 2: the picture has no class; expected the path of a picture, a"):
        read(tmp_path / "a.tsv")


def test_a_name_that_is_too_long_does_not_exist(tmp_path):
    (tmp_path / "a.tsv").write_text("a" * 5000 + "\tyes\n")
    with pytest.raises(DataError, match=r"a\.tsv, line 1: the picture 'a*' does not exist"):
        listing.table(tmp_path / "a.tsv")


def test_one_file_is_not_a_part(tmp_path):
    classes(tmp_path)
    for name in ("cat/1.png", "t10k-images-idx3-ubyte"):
        (tmp_path / name).touch()
        with pytest.raises(DataError, match=f"{name} is one file; expected a table of pictures .* for each class$"):
            read(tmp_path, test=tmp_path / name)
    (tmp_path / "labels.csv").touch()
    assert picture_parts.holds(str(tmp_path / "labels.csv"))
    with pytest.raises(
        DataError, match=r"labels\.csv is one file; .* class, or an IDX file with 'images' in its name$"
    ):
        read(tmp_path / "labels.csv")


def test_names_that_look_the_same_are_one_class(tmp_path):
    put(tmp_path, "caf\u00e9/1.png", "cafe\u0301/2.png", "caf\u00e9/3.png", *(f"tea/{n}.png" for n in range(3)))
    assert read(tmp_path).classes == ("caf\u00e9", "tea")
