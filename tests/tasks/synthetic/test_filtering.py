from io import BytesIO

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from attnlab.data.io.files import DataError
from attnlab.data.synthetic.filtering import filtered, kernel
from attnlab.tasks import TASKS
from attnlab.tasks.synthetic.filtering import Convolution

TASK = Convolution(size=3, channels=2, side=6)


@pytest.fixture(scope="module")
def problem():
    return TASK.load()


def convolved(image, keep=None, key=None):
    """Applies the filter of the task by a loop over its pixels."""
    weights = kernel(0, 3, 2, 2)
    padded = jnp.pad(image, ((1, 1), (1, 1), (0, 0)))
    return sum(
        padded[n : n + 6, m : m + 6] @ jnp.asarray(weights[n, m], jnp.float32) for n in range(3) for m in range(3)
    )


def test_it_is_registered():
    assert TASKS["convolution"] == Convolution()


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_filter_of_one_pixel_moves_the_image(size):
    images = np.random.default_rng(0).standard_normal((1, 6, 6, 1))
    for n in range(size):
        weights = np.zeros((size, size, 1, 1))
        weights[n, 0] = 1
        found = filtered(images, weights)[0, ..., 0]
        before = (size - 1) // 2
        moved = np.roll(images[0, ..., 0], (before - n, before), (0, 1))
        inside = ~np.isnan(found)
        assert inside.sum() == (6 - size + 1) ** 2
        np.testing.assert_array_equal(found[inside], moved[inside])


def test_error_is_0_for_the_convolution_and_1_for_the_mean(problem):
    silent = lambda image, keep=None, key=None: jnp.zeros_like(image)
    (examined,), drawn = problem.eval_batches("test"), problem.batch(0, 0, 64)
    assert problem.score("test", [problem.answer(convolved, examined)])["error"] < 1e-10
    assert float(problem.loss(convolved, drawn, None)[0]) < 1e-10
    assert problem.score("test", [problem.answer(silent, examined)])["error"] == pytest.approx(1, abs=1e-2)
    assert float(problem.loss(silent, drawn, None)[0]) == pytest.approx(np.nanmean(drawn["answers"] ** 2), rel=1e-5)


def test_batches_are_a_function_of_seed_and_step(problem):
    again, other, later = (problem.batch(*at, 2)["source"] for at in ((1, 2), (2, 2), (1, 3)))
    np.testing.assert_array_equal(problem.batch(1, 2, 2)["source"], again)
    assert not np.array_equal(again, other)
    assert not np.array_equal(again, later)
    assert problem.fingerprint != Convolution(size=3, channels=2, side=6, seed=1).load().fingerprint


def test_prompt_is_the_number_of_an_image(problem):
    batch = problem.encode_prompt("test:3")
    np.testing.assert_array_equal(batch["source"][0], problem.eval_batches("test")[0]["source"][2])
    assert problem.format_answer(problem.answer(convolved, batch)).startswith("an image of 6 × 6 × 2, root mean square")
    assert len(problem.tokens(batch)["source"]) == 36
    for text in ("3", "train:1", ""):
        with pytest.raises(DataError, match=r"must name a test image, test:1 … test:64"):
            problem.encode_prompt(text)
    for text in ("test:0", "valid:65", "test:" + "9" * 5000):
        with pytest.raises(DataError, match=r"part has images 1 … 64"):
            problem.encode_prompt(text)


def test_pictures_show_input_expected_and_predicted_image(problem):
    batch = {name: x[:16] for name, x in problem.eval_batches("test")[0].items()}
    (png,) = problem.pictures(batch, problem.answer(convolved, batch)).values()
    assert np.asarray(Image.open(BytesIO(png))).std() > 10


def test_invalid_values_are_refused():
    with pytest.raises(ValueError, match=r"task.side=2 must be a whole number in 3 …"):
        Convolution(side=2)
    with pytest.raises(ValueError, match=r"task.size=0 must be a whole number in 1 …"):
        Convolution(size=0)
