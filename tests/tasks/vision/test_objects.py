import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.images.scenes import FLAT, Scene, Scenes
from attnlab.data.io.files import DataError
from attnlab.data.synthetic import discs
from attnlab.tasks.base.shapes import Image
from attnlab.tasks.vision.boxes import corners
from attnlab.tasks.vision.matching import Costs, costs
from attnlab.tasks.vision.objects import EXAMINED, DetectionData, Detections

SIZE = (16, 24)
COUNTS = {"train": 7, "valid": 3, "test": EXAMINED + 3}
Q = 6


def drawn(count, seed):
    return discs.draw(np.random.Generator(np.random.PCG64(seed)), count, SIZE, 3)


@pytest.fixture(scope="module")
def problem():
    parts = {part: drawn(count, seed) for seed, (part, count) in enumerate(COUNTS.items())}
    return DetectionData(parts, discs.CLASSES, flip=True)


def model(image, key=None):
    """A model of two layers, whose answers grow with the brightness of the image."""
    bright = jnp.mean(image)
    scores, boxes = (np.random.default_rng(n).uniform(0.2, 0.8, (2, Q, 4)).astype(np.float32) for n in (0, 1))
    return scores * (1 + bright), boxes * (0.9 + 0.1 * jnp.tanh(bright))


def perfect(problem, part, limit=None):
    """Returns the true boxes as answers. Padding has the score zero."""
    return [
        {"boxes": corners(batch["boxes"]), "label": np.maximum(batch["label"], 0), "score": (batch["label"] >= 0) * 1.0}
        for batch in problem.eval_batches(part, limit)
    ]


def test_shape_and_batches(problem):
    most = max(len(scene.boxes) for seed, n in enumerate(COUNTS.values()) for scene in drawn(n, seed).scenes)
    assert problem.shape == Detections(Image(*SIZE, 3), 3, most)
    batch = problem.batch(0, 0, 4)
    assert {name: (x.shape, x.dtype) for name, x in batch.items()} == {
        "image": ((4, *SIZE, 3), np.uint8), "boxes": ((4, most, 4), np.float32), "label": ((4, most), np.int32),
    }  # fmt: skip
    assert (batch["boxes"][batch["label"] >= 0][:, 2:] > 0).all()


def test_an_epoch_has_each_image_once_by_seed_and_step(problem):
    first = [problem.batch(3, step, 7) for step in (0, 1)]
    for name, values in problem.batch(3, 1, 7).items():
        np.testing.assert_array_equal(values, first[1][name])
    numbers = lambda batch: sorted(np.sort(boxes[:, 2:].ravel()).tolist() for boxes in batch["boxes"])
    assert numbers(first[0]) == numbers(first[1]) == numbers(problem.batch(4, 0, 7))
    assert (problem.batch(4, 0, 7)["image"] != first[0]["image"]).any()


def test_the_loss_is_over_all_layers_and_metrics_are_of_the_last(problem):
    batch = problem.batch(0, 0, 3)
    loss, metrics = jax.jit(lambda batch: problem.loss(model, batch, None))(batch)
    one, means = jax.jit(costs), []
    for layer in range(2):
        parts = []
        for n in range(3):
            image = (batch["image"][n].astype(np.float32) - problem._mean) / problem._deviation
            scores, boxes = model(jnp.asarray(image))
            parts.append(
                one(scores[layer], boxes[layer], jnp.asarray(batch["label"][n]), jnp.asarray(batch["boxes"][n]))
            )
        means.append(Costs(*map(sum, zip(*parts, strict=True))).mean())
    np.testing.assert_allclose(loss, sum(float(mean["loss"]) for mean in means), rtol=1e-5)
    assert metrics.keys() == {"class", "l1", "giou"}
    for name, value in metrics.items():
        np.testing.assert_allclose(value, means[1][name], rtol=1e-5)


def test_answer_is_the_most_probable_class_except_no_object(problem):
    batch = problem.eval_batches("valid")[0]
    found = jax.jit(lambda batch: problem.answer(model, batch))(batch)
    image = (batch["image"][1].astype(np.float32) - problem._mean) / problem._deviation
    scores, boxes = (np.asarray(each)[-1] for each in model(jnp.asarray(image)))
    np.testing.assert_array_equal(found["label"][1], scores[:, :3].argmax(axis=1))
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found["score"][1], chances[:, :3].max(axis=1), rtol=1e-5)
    np.testing.assert_allclose(found["boxes"][1], corners(boxes), rtol=1e-5)


def test_true_boxes_score_1_and_none_score_0(problem):
    for part, limit in (("valid", None), ("test", None), ("test", 5)):
        score = problem.score(part, perfect(problem, part, limit), limit)
        assert score.pop("ap50") == score.pop("ap") == 1
        assert score.keys() <= {f"ap50.{name}" for name in discs.CLASSES}
        assert set(score.values()) == {1.0}
    none = [answer | {"boxes": answer["boxes"] * 0} for answer in perfect(problem, "test")]
    assert problem.score("test", none)["ap50"] == 0


def test_fill_rows_are_not_counted(problem):
    batches = problem.eval_batches("test")
    assert [len(batch["image"]) for batch in batches] == [EXAMINED, EXAMINED]
    assert (batches[1]["label"][3:] == -1).all()
    answers = perfect(problem, "test")
    answers[1]["score"] = np.where(np.arange(EXAMINED)[:, None] < 3, answers[1]["score"], 1.0)
    assert problem.score("test", answers)["ap"] == 1
    assert len(problem.eval_batches("test", 2)[0]["image"]) == 2


def test_class_without_boxes_is_left_out(problem):
    labels = {part: np.array([n % 2], np.int32) for n, part in enumerate(COUNTS)}
    box, image = np.float32([[0.1, 0.1, 0.5, 0.5]]), np.zeros((*SIZE, 3), np.uint8)
    parts = {part: Scenes([Scene("a", image, box, label, "")], {}) for part, label in labels.items()}
    lone = DetectionData(parts, ("one", "other"))
    assert lone.notes[0] == "train: there is no box of other; the average leaves out these classes"
    assert lone.score("test", perfect(lone, "test")) == {"ap50": 1, "ap": 1, "ap50.one": 1}


def test_a_limit_keeps_an_image_with_boxes():
    box, image, label = np.float32([[0.1, 0.1, 0.5, 0.5]]), np.zeros((*SIZE, 3), np.uint8), np.int32([0])
    full, empty = Scene("a", image, box, label, ""), Scene("b", image, box[:0], label[:0], "")
    parts = {part: Scenes([empty] * 40 + [full] + [empty] * 40, {}) for part in COUNTS}
    lone = DetectionData(parts, ("one",))
    for limit in (1, 5, 81, None):
        assert lone.score("valid", perfect(lone, "valid", limit), limit) == {"ap50": 1, "ap": 1, "ap50.one": 1}


def test_a_part_without_boxes_is_refused():
    bare = [scene._replace(boxes=scene.boxes[:0], labels=scene.labels[:0]) for scene in drawn(2, 0).scenes]
    empty = Scenes(bare, {FLAT: 3})
    for none, words in (
        (empty, r"the part 'valid' has no boxes left: 3 dropped \(no area\)$"),
        (Scenes(bare, {}), "boxes$"),
    ):
        with pytest.raises(DataError, match=words):
            DetectionData({"train": drawn(2, 0), "valid": none, "test": drawn(2, 1)}, discs.CLASSES)


def test_prompt_and_answer(problem, tmp_path):
    np.testing.assert_array_equal(
        problem.encode_prompt(" test:2 ")["image"], problem.eval_batches("test")[0]["image"][1:2]
    )
    for text in ("test:0", "test:36", "train:8"):
        with pytest.raises(DataError, match=f"{text} does not exist; the (test|train) part has images 1 …"):
            problem.encode_prompt(text)
    with pytest.raises(DataError, match="cannot be read"):
        problem.encode_prompt(str(tmp_path / "none.png"))
    answer = {
        "boxes": np.float32([[[0.1, 0.2, 0.5, 0.75], [0, 0, 1, 1], [0.5, 0.5, 0.6, 0.6]]]),
        "label": np.array([[0, 1, 2]]),
        "score": np.float32([[0.6, 0.4, 0.97]]),
    }
    assert problem.format_answer(answer) == "triangle (97%) at 50-60, 50-60; disc (60%) at 10-50, 20-75"
    assert problem.format_answer(answer | {"score": answer["score"] * 0}) == "nothing"


def test_pictures_show_predicted_boxes(problem):
    batch = {name: values[:3] for name, values in problem.eval_batches("test")[0].items()}
    answer = {name: np.asarray(values)[:3] for name, values in perfect(problem, "test")[0].items()}
    ((caption, png),) = problem.pictures(batch, answer).items()
    assert caption == "Solid lines: predictions with a score of 50% or more; dotted lines: true boxes; colours: classes"
    assert png.startswith(b"\x89PNG")
    ((_, bare),) = problem.pictures(batch, answer | {"score": answer["score"] * 0.0}).items()
    assert bare != png


def test_classes_are_stored_with_the_run():
    made = DetectionData({part: drawn(2, 0) for part in COUNTS}, ("a", "b", "c"))
    assert made.vocabulary == {"classes": ["a", "b", "c"]}


def test_the_fingerprint_covers_files_and_boxes(problem):
    parts = {part: drawn(count, seed) for seed, (part, count) in enumerate(COUNTS.items())}
    assert DetectionData(parts, discs.CLASSES).fingerprint == problem.fingerprint
    parts["valid"].scenes[0] = parts["valid"].scenes[0]._replace(digest="another")
    assert DetectionData(parts, discs.CLASSES).fingerprint != problem.fingerprint


def test_parts_and_limits_are_checked(problem):
    for part, limit in (("train", None), ("test", 0)):
        with pytest.raises(ValueError, match="part="):
            problem.eval_batches(part, limit)
