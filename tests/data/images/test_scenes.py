import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from attnlab.data.images import photos, scenes
from attnlab.data.images.scenes import (
    CUT,
    FLAT,
    OUTSIDE,
    REVERSED,
    Row,
    Scenes,
    listed,
    notes,
    picture,
    pictures,
    table,
)
from attnlab.data.io.bundles import within
from attnlab.data.io.files import DataError

HEAD = "image\twidth\theight\tlabel\txmin\tymin\txmax\tymax"
SIZE = (4, 6)
RED = (255, 0, 0)


def jpeg(width=60, height=40, colour=RED, kind="JPEG", mode="RGB"):
    file = io.BytesIO()
    Image.new(mode, (width, height), colour).save(file, kind)
    return file.getvalue()


def rows(*lines, head=HEAD):
    return table("\n".join([head, *("\t".join(map(str, line)) for line in lines)]) + "\n", "boxes.tsv")


def read(*lines, names=("a",), files=None):
    files = {"images/a.jpg": jpeg()} if files is None else files
    return scenes.scenes(files, names, rows(*lines), ("cat", "dog"), SIZE, "boxes.tsv")


def test_a_box_is_relative_to_its_image_at_any_size():
    (scene,), changes = read(("a", 60, 40, "dog", 15, 10, 45, 40), ("a.jpg", 60, 40, "cat", 0, 0, 6, 4))
    assert scene.image.shape == (*SIZE, 3)
    assert scene.image.dtype == np.uint8
    assert (abs(scene.image.astype(int) - RED) <= 2).all()
    np.testing.assert_array_equal(scene.boxes, np.float32([[0.25, 0.25, 0.75, 1], [0, 0, 0.1, 0.1]]))
    np.testing.assert_array_equal(scene.labels, [1, 0])
    assert changes == {}


def test_invalid_boxes_are_dropped_and_boxes_beyond_the_border_clipped_with_counts():
    found = read(
        ("a", 60, 40, "dog", 48, -4, 72, 20),  # partly outside
        ("a", 60, 40, "dog", 5, 5, 5, 5),  # a point
        ("a", 60, 40, "dog", 5, 5, 5 + 1e-9, 9),  # its left and right sides are equal in float32
        ("a", 60, 40, "dog", 60, 0, 60, 10),  # a line on the border
        ("a", 60, 40, "dog", 30, 10, 20, 20),  # its left side is right of its right side
        ("a", 60, 40, "dog", 70, 20, 65, 20),  # likewise, and outside the image, and flat
        ("a", 60, 40, "dog", 60, 0, 70, 10),  # right of the image
        ("a", 60, 40, "dog", 0, -1e9, 9, 0),  # above the image
        ("a", 60, 40, "dog", 10, 41, 20, 50),
        ("a", 60, 40, "dog", -2, 1, -1, 50),
        ("a", 60, 40, "cat", 6, 4, 12, 8),
    )
    np.testing.assert_array_equal(found.scenes[0].boxes, np.float32([[0.8, 0, 1, 0.5], [0.1, 0.1, 0.2, 0.2]]))
    np.testing.assert_array_equal(found.scenes[0].labels, [1, 0])
    assert found.changes == {REVERSED: 2, FLAT: 3, OUTSIDE: 4, CUT: 1}
    assert list(notes({"train": found, "test": Scenes([], {})}, ["cat", "dog"])) == [
        "train: 2 boxes dropped (corners reversed)",
        "train: 3 boxes dropped (no area)",
        "train: 4 boxes dropped (outside the image)",
        "train: 1 box clipped at the border of the image",
        "test: there is no box of cat, dog; the average leaves out these classes",
    ]


def test_changes_are_counted_over_all_images():
    boxes = [(name, 60, 40, "dog", 60, 0, 70, 10) for name in "ab"]
    assert read(*boxes, names="ab", files={"a.jpg": jpeg(), "b.jpg": jpeg()}).changes == {OUTSIDE: 2}


@pytest.mark.parametrize(("corners", "least"), [((0.25, 0.25, 0.75, 1), "0"), ((-0.01, 0, 0.5, 1), "-0.01")])
def test_relative_boxes_are_not_taken_for_pixels(corners, least):
    said = rf"^boxes.tsv: expected boxes in pixels, but all corners are in {least} … 1$"
    share = ("gone", 60, 40, "bird", *corners)
    with pytest.raises(DataError, match=said):
        rows(("a", 60, 40, "dog", 0, 0, 1, 1), share)
    # A tiny box is in pixels if any other corner is beyond 1.
    assert len(rows(share, ("a", 60, 40, "dog", 0, 0, 1, 1.5))) == 2


def test_an_image_may_have_no_boxes():
    found = read(names=("b",), files={"b.png": jpeg(kind="PNG")})
    assert found.scenes[0].boxes.shape == (0, 4)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("a", 60, 40, "bird", 1, 1, 2, 2), r"boxes.tsv, line 2: label 'bird' is not one of cat, dog"),
        (("b", 60, 40, "dog", 1, 1, 2, 2), r"boxes.tsv, line 2: the image 'b' does not exist"),
        (("a", 40, 60, "dog", 1, 1, 2, 2), r"line 2: the size of the image 'a' is given as 40 × 60, but is 60 × 40"),
        (("a", 60, 40, "dog", 1, "x", 2, 2), r"line 2: ymin is 'x', which is not a finite number"),
        (("a", 60, 40, "dog", 1, 1, "nan", 2), r"line 2: xmax is 'nan', which is not a finite number"),
        (("a", 60, 40, " ", 1, 1, 2, 2), r"line 2: label is empty"),
        (("a", 60, 40, "dog", 1, 1, 2), r"line 2: 8 columns expected, 7 found"),
    ],
)
def test_an_invalid_line_is_named(line, said):
    with pytest.raises(DataError, match=said):
        read(line)


def test_columns_may_have_any_order_and_no_size():
    found = rows(("dog", 1, 2, 3, 4, "a"), head="label\txmin\tymin\txmax\tymax\timage")
    assert found == [Row(2, "a", "dog", (1, 2, 3, 4), ())]
    for head in ("image\tlabel\txmin\tymin\txmax", f"{HEAD}\tlabel", ""):
        with pytest.raises(DataError, match=r"boxes.tsv, line 1: expected one column '(ymax|label|image)'"):
            rows(head=head)


def test_white_space_around_a_name_is_ignored():
    found = rows(("a", 60, 40, "dog", 1, 2, 3, 4), (" a ", "60 ", 40, "dog ", 1, 2, 3, " 4"))
    assert {row[1:] for row in found} == {found[0][1:]}


def test_separators_of_unicode_end_no_line():
    assert rows(("a", 60, 40, "cell\u2028x", 1, 2, 3, 4))[0].label == "cell\u2028x"


def test_names_that_are_equal_in_nfc_are_one():
    line = ("Mu\u0308he", 60, 40, "gru\u0308n", 1, 2, 3, 4)
    assert rows(line)[0].label == "gr\u00fcn"
    for image, name in (("Mu\u0308he", "M\u00fche"), ("M\u00fche", "Mu\u0308he")):
        files = {f"images/{image}.jpg": jpeg()}
        found = scenes.scenes(files, [name], rows(line), ("gr\u00fcn",), SIZE, "boxes.tsv")
        assert len(found.scenes[0].boxes) == 1


def test_a_missing_image_is_named():
    with pytest.raises(DataError, match=r"boxes.tsv: the image 'b' is missing"):
        read(names=("a", "b"))


@pytest.mark.parametrize("content", [jpeg()[:300], b"", b"GIF89a" + bytes(20), jpeg(kind="PNG")[:60]])
def test_a_damaged_image_is_one_clear_line(content):
    with pytest.raises(DataError, match=r"^images/a.jpg is damaged or not a JPEG or PNG: [^\n]+$"):
        read(files={"images/a.jpg": content})


def test_pictures_too_large_or_too_fine_are_refused_before_they_are_unpacked(monkeypatch):
    with pytest.raises(DataError, match=r"a.png has 60 × 40 pixels in mode I;16; .* 8 bits"):
        picture(jpeg(kind="PNG", mode="I;16", colour=9), "a.png", SIZE)
    monkeypatch.setattr(photos, "PIXELS", 60 * 40 - 1)
    with pytest.raises(DataError, match=r"a.jpg has 60 × 40 pixels in mode RGB; at most 2,399"):
        picture(jpeg(), "a.jpg", SIZE)


def test_grey_is_read_as_colour():
    image, size, _ = picture(jpeg(colour=77, mode="L", kind="PNG"), "a.png", SIZE)
    np.testing.assert_array_equal(image, np.full((*SIZE, 3), 77))
    assert size == (60, 40)


def test_two_images_of_one_name_are_refused():
    assert pictures({"x/a.jpg": b"", "b.PNG": b"", "boxes.tsv": b""}, "x") == {"a": "x/a.jpg", "b": "b.PNG"}
    with pytest.raises(DataError, match=r"two images with the name 'a': x/a.jpg and y/a.png"):
        pictures({"x/a.jpg": b"", "y/a.png": b""}, "x")


def test_files_that_macos_adds_are_ignored(tmp_path):
    names = ("set/a.jpg", "__MACOSX/set/._a.jpg", "set/.DS_Store", "set/._boxes.tsv", "set/boxes.tsv")
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for name in names:
            archive.writestr(name, HEAD)
            (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "root" / name).write_text(HEAD)
    for place in ("set.zip", "root"):
        files = within(tmp_path / place)
        assert list(pictures(files, place)) == ["a"]
        assert listed(files, place)[0] == []


def test_images_and_tables_may_be_links(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.jpg").write_bytes(jpeg())
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "images").symlink_to(tmp_path / "elsewhere")
    assert pictures(within(tmp_path / "root"), "x") == {"a": "images/a.jpg"}


def test_a_folder_holds_one_table(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(jpeg())
    files = within(tmp_path)
    with pytest.raises(
        DataError,
        match=r"one .tsv table of boxes, with the columns image, label, xmin, ymin, xmax, ymax separated by tabs; "
        r"found: none",
    ):
        listed(files, str(tmp_path))
    (tmp_path / "boxes.tsv").write_text(f"{HEAD}\na\t60\t40\tdog\t1\t2\t3\t4\n")
    files = within(tmp_path)
    assert [row.corners for row in listed(files, "x")[0]] == [(1, 2, 3, 4)]
    assert pictures(files, "x") == {"a": "images/a.jpg"}
    with pytest.raises(DataError, match="cannot be read"):
        within(tmp_path / "none")
