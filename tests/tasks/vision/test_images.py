import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.tasks.base.shapes import Classes, Image
from attnlab.tasks.vision.images import FashionMNIST, Figures, Images
from tests.data.images.test_idx_files import drawn, idx, written
from tests.data.images.test_picture_parts import classes


def test_figures_need_no_files():
    task = Figures(train_examples=40, valid_examples=10, test_examples=20, size=12)
    problem = task.load()
    assert problem.shape == Classes(Image(12, 12, 1), 10)
    assert problem.notes == ()
    assert problem.fingerprint == task.load().fingerprint != Figures(40, 10, 20, 12, seed=1).load().fingerprint
    sources = [problem.eval_batches(part)[0]["source"] for part in ("valid", "test")]
    assert [len(source) for source in sources] == [10, 20]
    # Each part is drawn separately.
    assert not any((image == sources[1]).all(axis=(1, 2, 3)).any() for image in sources[0])


def test_user_folder(tmp_path):
    written(tmp_path, "train", count=30)
    written(tmp_path, "t10k", count=6, seed=1)
    problem = Images(train=str(tmp_path)).load()
    assert problem.shape == Classes(Image(4, 5, 1), 3)
    assert problem.classes == ("0", "1", "2")
    assert sum(len(batch["label"]) for batch in problem.eval_batches("valid")) == 3
    (test,) = problem.eval_batches("test")
    np.testing.assert_array_equal(test["label"], drawn(6)[1])


def test_validation_images_of_a_folder_are_used(tmp_path):
    for seed, (part, count) in enumerate({"train": 30, "val": 7, "test": 6}.items()):
        written(tmp_path, part, count=count, seed=seed)
    problem = Images(train=str(tmp_path)).load()
    assert {part: len(labels) for part, (_, labels) in problem.parts.items()} == {"train": 30, "valid": 7, "test": 6}


def test_a_limit_samples_all_classes_of_a_sorted_folder(tmp_path):
    pixels, _ = drawn(2000)
    for part in ("train", "valid", "test"):
        idx(tmp_path / f"{part}-images-idx3-ubyte", pixels)
        idx(tmp_path / f"{part}-labels-idx1-ubyte", np.repeat(np.arange(10, dtype=np.uint8), 200))
    problem = Images(train=str(tmp_path)).load()
    for part in ("valid", "test"):
        few = [problem.eval_batches(part, 100) for _ in range(2)]
        assert set(few[0][0]["label"].tolist()) == set(range(10))
        np.testing.assert_array_equal(few[0][0]["source"], few[1][0]["source"])
        assert problem.score(part, few[0], 100) == {"accuracy": 1.0}
        # Without a limit, all examples come in the order of the file.
        whole = np.concatenate([batch["label"] for batch in problem.eval_batches(part)])
        np.testing.assert_array_equal(whole[:2000], problem.parts[part].labels)


def test_one_file_as_two_parts_is_refused_and_a_copy_is_reported(tmp_path):
    names = {part: written(tmp_path, part, count=9, seed=part == "valid") for part in ("train", "valid", "test")}
    assert Images(**names).load().notes[-1] == "test: 9 of 9 examples are also in train"
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte is both task\.train and task\.test; each part"):
        Images(train=str(tmp_path), test=names["train"]).load()


def test_user_files(tmp_path):
    names = {part: written(tmp_path, part, count=9, seed=n) for n, part in enumerate(("train", "valid", "test"))}
    problem = Images(**names).load()
    assert [len(problem.eval_batches(part)[0]["label"]) for part in ("valid", "test")] == [9, 9]
    with pytest.raises(ValueError, match=r"task.test='' must be the path of a file or folder"):
        Images(train=names["train"]).load()
    with pytest.raises(ValueError, match=r"task.train='' must be the path of a file or folder"):
        Images().load()


def test_inconsistent_parts_are_refused_and_named(tmp_path):
    train = written(tmp_path, "train", count=30)
    test = written(tmp_path, "test", shape=(5, 5))
    with pytest.raises(
        DataError, match=r"test-images-idx3-ubyte \(test\) contains images of 5 × 5 × 1, and .*\(train\)"
    ):
        Images(train, "", test).load()


def test_pictures_in_folders_of_classes(tmp_path):
    classes(tmp_path, count=20)
    problem = Images(train=str(tmp_path), held=0.2, share=0.5, shift=1, flip=True).load()
    assert problem.shape == Classes(Image(4, 5, 1), 2)
    assert problem.classes == ("cat", "dog")
    # Four images of each class are held out for the test, and then a fifth of the others for validation.
    counts = {part: np.bincount(held.labels).tolist() for part, held in problem.parts.items()}
    assert counts == {"train": [13, 13], "valid": [3, 3], "test": [4, 4]}
    assert problem.batch(0, 0, 12)["source"].shape == (12, 4, 5, 1)
    assert len(problem.inputs("test")) == 8
    batches = problem.eval_batches("test")
    labels = np.concatenate([batch["label"] for batch in batches])[:8]
    assert [problem.classes[label] for label in labels] == [name.split("/")[0] for name in problem.inputs("test")]
    assert problem.score("test", batches) == {"accuracy": 1.0}
    assert problem.notes[0].endswith(
        "8 of 40 pictures, 0.2 of every class, are the test images, because there are no others"
    )


def test_the_fingerprint_of_pictures_depends_on_pixels_and_classes(tmp_path):
    one, other, third = ((tmp_path / name) for name in ("one", "other", "third"))
    classes(one)
    classes(other, kinds=("dog", "cat"))  # other pixels under each name
    classes(third)
    found = {root: Images(train=str(root), held=0.25).load().fingerprint for root in (one, other, third)}
    assert found[one] == found[third] != found[other]
    (third / "cat" / "0.png").rename(third / "dog" / "4.png")
    assert Images(train=str(third), held=0.25).load().fingerprint != found[one]


def test_pictures_of_which_a_part_lacks_a_class_or_repeats_one_are_reported(tmp_path):
    for seed, (part, kinds) in enumerate({"train": "abc", "valid": "abc", "test": "ab"}.items()):
        classes(tmp_path / part, kinds=kinds, seed=seed % 2)
    (tmp_path / "runs").mkdir()
    found = Images(train=str(tmp_path)).load().notes
    assert found[0].startswith(f"{tmp_path}: not read: runs; ")
    assert "test: there is no image of 1 of 3 classes: c" in found
    assert "test: 8 of 8 examples are also in train" in found


def test_pictures_need_a_test_if_a_validation_is_given_and_other_parts_that_exist(tmp_path):
    for part in ("train", "valid"):
        classes(tmp_path / part, seed=part == "valid")
    train, valid = (str(tmp_path / part) for part in ("train", "valid"))
    with pytest.raises(ValueError, match=r"^task\.test='' must be the path of a file or folder$"):
        Images(train=train, valid=valid).load()
    with pytest.raises(DataError, match=r"^task\.test='.*gone' cannot be read: there is no such file or folder$"):
        Images(train=train, test=f"{tmp_path}/gone").load()
    with pytest.raises(DataError, match=r"train is both task\.train and task\.test"):
        Images(train=str(tmp_path), test=train).load()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"share": 0.0}, "task.share=0.0 must be above 0 and at most 1"),
        ({"share": 1.5}, "task.share=1.5 must be above 0 and at most 1"),
        ({"held": 1.0}, "task.held=1.0 must be above 0 and below 1"),
        ({"shift": -1}, "task.shift=-1 must be a whole number in 0"),
    ],
)
@pytest.mark.parametrize("kind", [FashionMNIST, Images])
def test_invalid_values_are_refused(kind, changes, said):
    with pytest.raises(ValueError, match=said):
        kind(**changes)


def test_held_out_fraction_and_validation_file_are_exclusive():
    with pytest.raises(ValueError, match=r"^task\.held=0\.5 has no effect with task\.valid='there'$"):
        Images(valid="there", held=0.5)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(DataError, match=r"task\.train='.*FLODER' cannot be read: there is no such file or folder"):
        Images(str(tmp_path / "FLODER")).load()


def test_invalid_figures_are_refused():
    for changes in ({"size": 8}, {"noise": 2.0}, {"train_examples": 0}, {"seed": -1}):
        ((name, value),) = changes.items()
        with pytest.raises(ValueError, match=f"task.{name}={value}"):
            Figures(**changes)


def test_fashion_mnist(published):
    published("fashion_mnist")
    problem = FashionMNIST(share=0.01).load()
    assert problem.shape == Classes(Image(28, 28, 1), 10)
    counts = {
        part: sum((batch["label"] >= 0).sum() for batch in problem.eval_batches(part)) for part in ("valid", "test")
    }
    assert counts == {"valid": 3000, "test": 10_000}
    # An epoch has 57 images of each class.
    labels = np.concatenate([problem.batch(0, step, 57)["label"] for step in range(10)])
    assert np.bincount(labels).tolist() == [57] * 10
    assert problem.notes == ()
