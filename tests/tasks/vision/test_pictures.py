from io import BytesIO

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from attnlab.data.images.labelled import Labelled
from attnlab.data.io.files import DataError
from attnlab.tasks.vision.pictures import Augmentation, ImageData

SIZE = (3, 4, 1)
CLASSES = ("dark", "dim", "bright")


def part(count, seed=0):
    """Returns images whose brightness determines their class."""
    labels = np.arange(count, dtype=np.int32) % 3
    noise = np.random.default_rng(seed).integers(40, size=(count, *SIZE))
    return Labelled((noise + 80 * labels[:, None, None, None]).astype(np.uint8), labels)


def made(share=1.0, change=Augmentation(), train=30):
    return ImageData({"train": part(train), "valid": part(6, 1), "test": part(20, 2)}, CLASSES, share, change)


def bright(source, keep, key=None):
    """A model that classifies by mean brightness. After normalization, the classes are at about −1.2, 0 and 1.2."""
    return -((source.mean() - jnp.array([-1.2, 0.0, 1.2])) ** 2)


def test_training_bytes_and_evaluation_values_agree():
    problem = made()
    batch = problem.batch(0, 0, 30)
    assert {name: (x.shape, str(x.dtype)) for name, x in batch.items()} == {
        "source": ((30, *SIZE), "uint8"), "label": ((30,), "int32"),
    }  # fmt: skip
    level = batch["source"].mean(), batch["source"].std()
    given = (batch["source"].astype(np.float32) - level[0]) / level[1]
    mean = lambda source, keep, key=None: source.mean(keepdims=True).reshape(1)
    np.testing.assert_allclose(problem.scores(mean, batch)[:, 0], given.mean(axis=(1, 2, 3)), rtol=1e-4, atol=1e-5)
    (test,) = problem.eval_batches("test")
    expected = (part(20, 2).images.astype(np.float32) - level[0]) / level[1]
    np.testing.assert_allclose(test["source"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(problem.scores(mean, test)[:, 0], expected.mean(axis=(1, 2, 3)), rtol=1e-4, atol=1e-5)


def test_perfect_classifier_is_right_on_bytes_and_values():
    problem = made()
    loss, found = problem.loss(bright, problem.batch(0, 0, 16), None)
    assert float(found["accuracy"]) == 1
    assert np.isfinite(loss)
    for part_ in ("valid", "test"):
        answers = [problem.answer(bright, batch) for batch in problem.eval_batches(part_)]
        assert problem.score(part_, answers) == {"accuracy": 1.0}
    with pytest.raises(ValueError, match="part='train'"):
        problem.eval_batches("train")


def test_an_epoch_has_each_image_once_and_subsets_differ_by_seed():
    held = part(30).images.reshape(30, -1)
    for share, count in ((1.0, 30), (0.2, 6)):
        problem = made(share)
        found = [
            np.concatenate([problem.batch(seed, step, 3)["source"] for step in range(count // 3)]) for seed in (0, 1)
        ]
        rows = [[int((held == image.ravel()).all(axis=1).argmax()) for image in epoch] for epoch in found]
        assert [len(set(each)) for each in rows] == [count, count]
        assert [np.bincount(np.array(each) % 3).tolist() for each in rows] == [[count // 3] * 3] * 2
        assert (set(rows[0]) == set(rows[1])) == (share == 1)


def test_augmentation_is_a_function_of_seed_and_step():
    plain, moved = made(), made(change=Augmentation(1, True))
    a, b = moved.batch(0, 1, 8), moved.batch(0, 1, 8)
    np.testing.assert_array_equal(a["source"], b["source"])
    np.testing.assert_array_equal(a["label"], plain.batch(0, 1, 8)["label"])
    assert (a["source"] != plain.batch(0, 1, 8)["source"]).any()
    np.testing.assert_array_equal(moved.eval_batches("test")[0]["source"], plain.eval_batches("test")[0]["source"])


def test_prompt_is_a_number_or_a_file(tmp_path):
    problem = made()
    (test,) = problem.eval_batches("test")
    np.testing.assert_array_equal(problem.encode_prompt("test:12")["source"], test["source"][11:12])
    Image.fromarray(part(20, 2).images[11, ..., 0]).save(tmp_path / "a.png")
    np.testing.assert_array_equal(problem.encode_prompt(str(tmp_path / "a.png"))["source"], test["source"][11:12])
    assert problem.format_answer(problem.answer(bright, problem.encode_prompt("valid:3"))).startswith("bright (")
    for number in (0, 21):
        with pytest.raises(DataError, match=f"test:{number} does not exist; the test part has images 1 … 20"):
            problem.encode_prompt(f"test:{number}")
    with pytest.raises(DataError, match="hello cannot be read: No such file"):
        problem.encode_prompt("hello")
    assert problem.tokens(problem.encode_prompt("test:1"))["source"] == [str(n) for n in range(1, 13)]


def test_pictures_show_predictions():
    problem = made()
    batch = {name: x[:16] for name, x in problem.eval_batches("test")[0].items()}
    answer = problem.answer(lambda source, keep, key=None: jnp.array([0.0, 0.0, 1.0]), batch)
    ((caption, png),) = problem.pictures(batch, answer).items()
    assert caption.startswith("Test images: 5 of 16 correct")
    drawn = np.asarray(Image.open(BytesIO(png)).convert("L"))
    assert drawn.shape[1] == 8 * 144
    assert np.ptp(drawn) > 200


def test_absent_classes_are_noted():
    parts = {"train": part(30), "valid": part(2, 1), "test": part(20, 2)}
    assert ImageData(parts, CLASSES).notes == ("valid: there is no image of 1 of 3 classes: bright",)
    twice = {name: Labelled(*map(np.flip, (held.images, held.labels), (0, 0))) for name, held in parts.items()}
    assert ImageData(parts | {"test": twice["train"]}, CLASSES).notes[1:] == (
        "test: 30 of 30 examples are also in train",
    )


def test_pictures_in_several_classes_are_named():
    parts = {"train": part(30), "valid": part(9), "test": part(6)}
    images = parts["test"].images.copy()
    images[1] = images[0]
    labels = parts["test"].labels.copy()
    labels[:2] = 0, 1
    test = Labelled(images, labels)
    line = "1 picture is in several classes, of which only one can be correct: "
    assert f"test: {line}test:1 and test:2" in ImageData(parts | {"test": test}, CLASSES).notes
    scored = ImageData(parts, CLASSES).with_test(test, [f"{n}.png" for n in range(6)], "folder")
    assert f"folder: {line}0.png and 1.png" in scored.notes


def test_classes_too_small_for_a_subset_are_noted():
    assert made(share=0.04).notes == (
        "train: 3 classes have too few images for a share of 0.04; one image of each is used",
    )
    assert made(share=0.1).notes == ()


def test_class_names_are_stored_with_the_run():
    made = ImageData({name: part(9) for name in ("train", "valid", "test")}, ("a", "b", "c"))
    assert made.vocabulary == {"classes": ["a", "b", "c"]}
