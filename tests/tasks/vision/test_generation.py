from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.lab.runs.pictures import PNG
from attnlab.tasks.base.shapes import Image
from attnlab.tasks.synthetic.reverse import Reverse
from attnlab.tasks.vision import generation
from attnlab.tasks.vision.generation import Generated, Generation, _spread
from attnlab.tasks.vision.images import Figures, Images

FIGURES = Figures(train_examples=300, valid_examples=40, test_examples=60, size=12, noise=0.05)
TASK = Generation(FIGURES, latent=3, samples=80, classifier_steps=40)


@pytest.fixture(scope="module")
def problem():
    return TASK.load()


class Two(NamedTuple):
    """A generator of uniform grey, sigmoid(a · z), and a discriminator b₀ · mean(x) + b₁."""

    a: Any
    b: Any

    def networks(self):
        grey = lambda a, z: jnp.broadcast_to(jax.nn.sigmoid(a @ z), (12, 12, 1))
        judge = lambda b, x: b[0] * x.mean() + b[1]
        return jax.tree_util.Partial(grey, self.a), jax.tree_util.Partial(judge, self.b)


MODEL = Two(jnp.array([1.0, -2, 0.5]), jnp.array([3.0, -1.2]))


def test_a_batch_holds_bytes_and_latents_by_seed_and_step(problem):
    assert problem.shape == Generated(Image(12, 12, 1), 3)
    batch, again = problem.batch(1, 2, 50), TASK.load().batch(1, 2, 50)
    assert batch["source"].shape == (50, 12, 12, 1)
    assert batch["source"].dtype == np.uint8
    assert batch["latent"].shape == (50, 3)
    assert batch["latent"].dtype == np.float32
    for name in batch:
        np.testing.assert_array_equal(batch[name], again[name])
        for other in (problem.batch(1, 3, 50), problem.batch(2, 2, 50)):
            assert not np.array_equal(batch[name], other[name])
    assert abs(problem.batch(0, 0, 3000)["latent"].std() - 1) < 0.05


def test_each_player_has_the_gradient_of_its_own_loss(problem):
    batch = problem.batch(0, 0, 16)
    source = batch["source"].astype(np.float32) / 255

    def of_discriminator(b, a):
        generator, discriminator = Two(a, b).networks()
        fake = jax.vmap(discriminator)(jax.vmap(generator)(batch["latent"]))
        return jax.nn.relu(1 - jax.vmap(discriminator)(source)).mean() + jax.nn.relu(1 + fake).mean()

    def of_generator(a, b):
        generator, discriminator = Two(a, b).networks()
        return -jax.vmap(discriminator)(jax.vmap(generator)(batch["latent"])).mean()

    (loss, found), gradient = jax.jit(jax.value_and_grad(lambda model: problem.loss(model, batch, None), has_aux=True))(
        MODEL
    )
    a, b = MODEL
    np.testing.assert_allclose(gradient.b, jax.jit(jax.grad(of_discriminator))(b, a), rtol=1e-5)
    np.testing.assert_allclose(gradient.a, jax.jit(jax.grad(of_generator))(a, b), rtol=1e-5)
    assert float(found["d_loss"]) == pytest.approx(float(of_discriminator(b, a)), rel=1e-6)
    assert float(found["g_loss"]) == pytest.approx(float(of_generator(a, b)), abs=1e-6)
    assert float(loss) == pytest.approx(float(found["d_loss"] + found["g_loss"]), rel=1e-6)


def test_hinge_losses_by_hand(problem):
    """White has the score 1.8 and black −1.2. The image generated from zeros is grey and has the score 0.3."""
    batch = {"source": np.stack([np.full((12, 12, 1), n, np.uint8) for n in (255, 0)]), "latent": np.zeros((2, 3))}
    loss, found = problem.loss(MODEL, batch, None)
    assert float(found["d_loss"]) == pytest.approx((0 + 2.2) / 2 + 1.3)
    assert float(found["g_loss"]) == pytest.approx(-0.3)
    assert float(found["real"]) == pytest.approx(0.3)
    assert float(loss) == pytest.approx(2.1)


def test_distances_of_real_generated_and_noise_images(problem):
    def answers(images):
        batches = problem.eval_batches("test")
        return [{"image": images[n * 80 : n * 80 + len(batch["latent"])]} for n, batch in enumerate(batches)]

    train = problem.batch(0, 0, 80)["source"] / np.float32(255)
    random = np.random.default_rng(0)
    blurred = (train + np.roll(train, 2, 1) + np.roll(train, 2, 2)) / 3
    real, made, noise = (
        problem.score("test", answers(images))
        for images in (train, blurred, random.random((80, 12, 12, 1), np.float32))
    )
    for name in ("frechet", "kernel"):
        assert real[name] < made[name] < noise[name]
    assert real["frechet"] == pytest.approx(real["frechet.real"], rel=0.5)
    assert noise["frechet"] == pytest.approx(real["frechet.noise"], rel=0.2)
    assert real["diversity"] > 0.9
    black = problem.score("test", answers(np.zeros((80, 12, 12, 1), np.float32)))
    assert black["diversity"] < 0.9
    assert np.isnan(problem.score("test", answers(np.full((80, 12, 12, 1), np.nan)))["frechet"])


def test_eval_batches_are_fixed_and_fill_rows_not_scored(problem):
    task = Generation(FIGURES, latent=3, samples=300, classifier_steps=40)
    first, last = task.load().eval_batches("valid")
    assert first["latent"].shape == last["latent"].shape == (250, 3)
    assert first["source"].shape == (250, 12, 12, 1)
    np.testing.assert_array_equal(problem.eval_batches("valid", 80)[0]["latent"], first["latent"][:80])
    assert not np.array_equal(problem.eval_batches("test")[0]["latent"], first["latent"][:80])
    # With a limit of seven, seven images are scored. Later images do not count.
    (batch,) = problem.eval_batches("valid", 7)
    answer = problem.answer(MODEL, batch)
    assert answer["image"].shape == (7, 12, 12, 1)
    more = {"image": np.concatenate([answer["image"], np.ones((3, 12, 12, 1))])}
    assert problem.score("valid", [more], 7) == problem.score("valid", [answer], 7)
    assert set(problem.score("valid", [answer], 7)) == {"frechet", "kernel", "diversity"}


def test_prompt_is_a_seed_and_answer_an_image(problem):
    batch = problem.encode_prompt("7")
    np.testing.assert_array_equal(batch["latent"], problem.encode_prompt(" 7 ")["latent"])
    assert not np.array_equal(batch["latent"], problem.encode_prompt("8")["latent"])
    assert problem.answer(MODEL, batch)["image"].shape == (1, 12, 12, 1)
    half = np.zeros((1, 12, 12, 1))
    half[:, 6:, :2] = 1
    title, *rows = problem.format_answer({"image": half}).split("\n")
    assert title.split(" (")[0] in problem.classes
    assert rows == ["", "", "", "@@", "@@", "@@"]
    for wrong in ("", "a", "-1", "1.5", "٣"):
        with pytest.raises(DataError, match="must be a whole number"):
            problem.encode_prompt(wrong)


def test_pictures_of_generated_and_nearest_real_images(problem):
    train = problem.batch(0, 0, 2)["source"] / np.float32(255)
    drawn = problem.pictures({}, {"image": train})
    assert len(drawn) == 2
    assert all(png.startswith(PNG) for png in drawn.values())


def test_the_nearest_training_image_of_a_training_image_is_itself(monkeypatch):
    problem, shown = TASK.load(), []
    monkeypatch.setattr("attnlab.plotting.grid", lambda images, titles: shown.append((images, titles)) or PNG)
    # More images are used for the distance than are compared here, and the two selections differ.
    monkeypatch.setattr(generation, "NEIGHBOURS", 70)
    images = _spread(_spread(problem.parts["train"].images, TASK.samples), 70)
    problem.pictures({}, {"image": images / np.float32(255)})
    (_, (nearest, distances)) = shown
    apart = [np.abs(one.astype(int) - other).sum() for one, other in zip(images, nearest, strict=True)]
    assert np.mean(np.equal(apart, 0)) > 0.95  # an image that the classifier confuses with another may be as near
    assert all(float(distance) < 0.1 for distance in distances)


def test_other_data_is_another_fingerprint(problem):
    assert TASK.load().fingerprint == problem.fingerprint
    for other in (Generation(FIGURES, latent=4), Generation(Figures(size=12), latent=3)):
        assert other.load().fingerprint != problem.fingerprint
    assert problem.vocabulary == {"classes": list(problem.classes)}
    assert problem.tokens({}) == {"source": [], "target": []}


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"images": "fashion-mnist"}, r"task\.images='fashion-mnist' must be an image classification task"),
        ({"latent": 0}, r"task\.latent=0"),
        ({"samples": 1}, r"task\.samples=1"),
        ({"classifier_steps": 0}, r"task\.classifier_steps=0"),
        ({"seed": -1}, r"task\.seed=-1"),
    ],
)
def test_invalid_values_are_refused(fields, refusal):
    with pytest.raises(ValueError, match=refusal):
        Generation(**fields)


def test_errors_of_the_inner_task_name_its_fields():
    with pytest.raises(ValueError, match=r"^task\.images\.train='' must be the path of a file or folder"):
        Generation(Images()).load()
    with pytest.raises(DataError, match=r"^task\.images\.train='nowhere' cannot be read"):
        Generation(Images("nowhere")).load()


def test_task_without_images_is_refused():
    with pytest.raises(ValueError, match=r"task\.images=Reverse must be an image classification task"):
        Generation(Reverse(train_examples=8, valid_examples=8, test_examples=8)).load()
