import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image as Picture

from attnlab.data.io.files import DataError
from attnlab.tasks.base.shapes import Classes, Image
from attnlab.tasks.synthetic.pathfinder import Pathfinder

TASK = Pathfinder(size=16, dashes=3, distractors=1, valid_examples=20, test_examples=300)


@pytest.fixture(scope="module")
def problem():
    return TASK.load()


def test_a_batch_is_images_half_of_them_joined(problem):
    assert problem.shape == Classes(Image(16, 16, 1), 2)
    batch = problem.batch(0, 0, 10)
    assert {name: (x.shape, x.dtype) for name, x in batch.items()} == {
        "source": ((10, 16, 16, 1), np.float32), "label": ((10,), np.int32),
    }  # fmt: skip
    assert set(np.unique(batch["source"])) == {0, 1}
    assert batch["label"].sum() == 5


def test_batches_are_a_function_of_seed_and_step_and_parts_differ(problem):
    again = TASK.load()
    assert again.fingerprint == problem.fingerprint
    np.testing.assert_array_equal(problem.batch(1, 2, 4)["source"], again.batch(1, 2, 4)["source"])
    for other in ((1, 3), (2, 2)):
        assert (problem.batch(1, 2, 4)["source"] != problem.batch(*other, 4)["source"]).any()
    valid, test = (problem.eval_batches(part, 20)[0]["source"] for part in ("valid", "test"))
    assert (valid != test).any()


def test_evaluation_is_scored_and_drawn(problem):
    batches = problem.eval_batches("test")
    assert [len(batch["label"]) for batch in batches] == [128, 128, 128]  # of 256 pixels each
    assert problem.score("test", [{"label": np.ones(128, np.int32)} for _ in batches]) == {"accuracy": 0.5}
    (caption, picture), = problem.pictures(batches[0], {"label": batches[0]["label"]}).items()  # fmt: skip
    assert caption == "Are the dots joined? 16 of 16 correct"
    assert picture.startswith(b"\x89PNG")
    last = problem.pictures(batches[2], {"label": np.ones(128, np.int32)})
    assert next(iter(last)).endswith("of 16 correct")


def test_prompt_is_a_number_or_a_picture(problem, tmp_path):
    held = problem.eval_batches("test")[0]
    batch = problem.encode_prompt("test:3")
    np.testing.assert_array_equal(batch["source"][0], held["source"][2])
    path = tmp_path / "picture.png"
    Picture.fromarray((held["source"][2, ..., 0] * 255).astype(np.uint8)).save(path)
    np.testing.assert_array_equal(problem.encode_prompt(str(path))["source"], batch["source"])
    sure = lambda source, keep, key=None: jnp.array([0.0, 5.0])
    assert problem.format_answer(problem.answer(sure, batch)).startswith("joined (99.")
    assert len(problem.tokens(batch)["source"]) == 256
    for text, words in (("test:301", "has images 1 … 300"), ("valid:0", "1 … 20"), ("none.png", "cannot be read")):
        with pytest.raises(DataError, match=words):
            problem.encode_prompt(text)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"size": 8}, r"task\.size=8 must be a whole number in 12"),
        ({"dashes": 1}, r"task\.dashes=1"),
        ({"distractors": -1}, r"task\.distractors=-1"),
        ({"valid_examples": 0}, r"task\.valid_examples=0"),
        ({"seed": 2**32}, r"task\.seed=4294967296"),
    ],
)
def test_invalid_values_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Pathfinder(**fields)


def test_curves_without_room_are_refused_on_load(monkeypatch):
    monkeypatch.setattr("attnlab.data.synthetic.pathfinder.BARREN", 1)
    with pytest.raises(ValueError, match=r"^task\.size=12 is too small for task\.dashes=9 and task\.distractors=3: "):
        Pathfinder(size=12, dashes=9).load()


def test_slow_training_batch_raises_nothing(monkeypatch):
    problem = Pathfinder(size=12, dashes=2, distractors=0, valid_examples=1, test_examples=1).load()
    monkeypatch.setattr("attnlab.data.synthetic.pathfinder.BARREN", 0)
    with pytest.raises(ValueError, match="is too small"):
        problem.draw(np.random.default_rng(0), 4, "test")
    assert len(problem.batch(0, 1, 4)["source"]) == 4
