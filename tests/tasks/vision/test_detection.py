import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.tasks.base.shapes import Image
from attnlab.tasks.vision.detection import Boxes, Cells, Discs
from attnlab.tasks.vision.objects import Detections
from tests.data.images.test_scenes import HEAD, jpeg


def written(folder, *rows, images=("a", "b")):
    """Writes a folder of images with a table, and returns its name for the field of a part."""
    folder.mkdir()
    for name in images:
        (folder / f"{name}.jpg").write_bytes(jpeg())
    lines = ["\t".join(map(str, row)) for row in rows]
    (folder / "boxes.tsv").write_text("\n".join([HEAD, *lines]))
    return str(folder)


def test_figures_need_no_files():
    task = Discs(train_examples=6, valid_examples=4, test_examples=5, rows=16, columns=24, most=2)
    problem = task.load()
    assert problem.shape == Detections(Image(16, 24, 3), 3, 2)
    assert [len(problem.eval_batches(part)[0]["image"]) for part in ("valid", "test")] == [4, 5]
    assert problem.fingerprint == task.load().fingerprint
    assert problem.fingerprint != Discs(6, 4, 5, 16, 24, 2, seed=1).load().fingerprint


def test_published_cells(published):
    published("bccd")
    problem = Cells(rows=24, columns=32).load()
    assert problem.shape == Detections(Image(24, 32, 3), 3, 30)
    assert problem.classes == ("RBC", "WBC", "Platelets")
    assert problem.notes == ("valid: 1 box dropped (no area)", "test: 1 box dropped (no area)")
    # The cells are mostly red.
    labels = np.concatenate([batch["label"].ravel() for batch in problem.eval_batches("test")])
    np.testing.assert_array_equal(np.bincount(labels + 1)[1:], [967, 87, 83])


def test_user_folder(tmp_path):
    dog, cat = ("a", 60, 40, "dog", 6, 4, 12, 8), ("b.jpg", 60, 40, "cat", 0, 0, 30, 20)
    train = written(tmp_path / "train", dog, cat, ("a", 60, 40, "dog", 5, 5, 5, 9))
    other = written(tmp_path / "other", cat, images=("b", "c"))
    valid = written(tmp_path / "valid", dog)
    problem = Boxes(train, valid, other, rows=16, columns=24).load()
    with pytest.raises(DataError, match=r"other is both task\.valid and task\.test; each part needs its own data"):
        Boxes(train, other, other).load()
    assert problem.classes == ("cat", "dog")
    assert problem.shape == Detections(Image(16, 24, 3), 2, 1)
    assert problem.notes[0] == "train: 1 box dropped (no area)"
    (test,) = problem.eval_batches("test")
    # The second image has no box.
    np.testing.assert_array_equal(test["label"], [[0], [-1]])
    np.testing.assert_array_equal(test["boxes"][0], [[0.25, 0.25, 0.5, 0.5]])


def test_classes_without_boxes_in_a_scored_folder_are_reported(tmp_path):
    dog, cat = ("a", 60, 40, "dog", 6, 4, 12, 8), ("b.jpg", 60, 40, "cat", 0, 0, 30, 20)
    parts = [written(tmp_path / part, dog, cat) for part in ("train", "valid", "test")]
    task = Boxes(*parts, rows=16, columns=24)
    problem, other = task.load(), written(tmp_path / "other", cat, images=("b", "c"))
    line = f"{other}: there is no box of dog; the average leaves out these classes"
    assert task.with_test(problem, other).notes[0] == line
    # Without a table the truth is unknown, and nothing is scored.
    (tmp_path / "other" / "boxes.tsv").unlink()
    assert not any("there is no box" in note for note in task.with_test(problem, other).notes)


def test_unknown_label_is_named(tmp_path):
    train = written(tmp_path / "train", ("a", 60, 40, "dog", 6, 4, 12, 8))
    test = written(tmp_path / "test", ("a", 60, 40, "bird", 6, 4, 12, 8))
    with pytest.raises(DataError, match=r"test.boxes\.tsv, line 2: label 'bird' is not one of dog"):
        Boxes(train, written(tmp_path / "valid", ("b", 60, 40, "dog", 6, 4, 12, 8)), test).load()
    none = written(tmp_path / "none")
    with pytest.raises(DataError, match=r"none has no boxes"):
        Boxes(train, none, test).load()


@pytest.mark.parametrize("fields", [{"rows": 15}, {"columns": 2000}, {"rows": 96.0}])
@pytest.mark.parametrize("kind", [Cells, Discs, Boxes])
def test_invalid_values_name_the_field(kind, fields):
    ((name, value),) = fields.items()
    with pytest.raises(ValueError, match=f"task.{name}={value} must be a whole number in 16"):
        kind(**fields)


def test_files_must_be_named():
    with pytest.raises(ValueError, match=r"task.train='' must be the path of a file"):
        Boxes().load()
    with pytest.raises(ValueError, match=r"task.most=65 must be a whole number in 1"):
        Discs(most=65)
