import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis import cost
from attnlab.analysis.maps import attention_maps
from attnlab.mechanisms import Linear
from attnlab.models.vit import ViT, patch_grid
from attnlab.modules.position import Learned, Learned2D, Position, Rotary2D, Sinusoidal, Sinusoidal2D
from attnlab.tasks.base.shapes import Classes, Image, Tokens

from .training import filled, overfitted

SHAPE = Classes(Image(4, 6, 1), 3)
SMALL = {"width": 8, "heads": 2, "layers": 1, "feedforward": 8, "patch": 2}
IMAGE = np.random.default_rng(0).normal(size=(4, 6, 1)).astype(np.float32)
scores = jax.jit(lambda model, image: model(image))


def mapped(dense, x):
    """Computes x w + b in float64."""
    return x @ np.asarray(dense.w[...], np.float64) + np.asarray(dense.b[...], np.float64)


def swapped(image, size=2):
    """Returns the image with its first and last square exchanged."""
    image = image.copy()
    image[:size, :size], image[-size:, -size:] = image[-size:, -size:].copy(), image[:size, :size].copy()
    return image


def test_the_default_has_the_published_number_of_parameters():
    like = jax.eval_shape(lambda: ViT().create(jax.random.key(0), Classes(Image(28, 28, 1), 10)))
    layer = 4 * (64 * 64 + 64) + (64 * 128 + 128) + (128 * 64 + 64) + 2 * 2 * 64
    assert cost.parameters(like) == 6 * layer + (16 * 64 + 64) + (7 + 7) * 32 + 2 * 64 + (64 * 10 + 10)


def test_a_hidden_layer_before_the_classes_is_optional():
    model = filled(ViT(head=5, **SMALL), SHAPE)
    x = np.asarray(jax.jit(lambda model: model.read(jnp.asarray(IMAGE))[0])(model), np.float64).mean(axis=0)
    y = np.tanh(mapped(model.head.hidden, x))
    np.testing.assert_allclose(scores(model, IMAGE), mapped(model.head.scores, y), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=r"model.head=-1 must be at least 1"):
        ViT(head=-1)


def test_without_positions_an_image_is_a_set_of_patches_and_with_them_it_is_not():
    for position, same in ((Position(), True), (Learned2D(), False)):
        model = filled(ViT(position=position, **SMALL), SHAPE)
        difference = np.abs(scores(model, IMAGE) - scores(model, swapped(IMAGE))).max()
        assert difference < 1e-5 if same else difference > 1e-3


def test_patches_of_one_pixel():
    model = filled(ViT(position=Position(), **{**SMALL, "patch": 1}), SHAPE)
    pixels = np.random.default_rng(1).permutation(IMAGE.reshape(-1)).reshape(IMAGE.shape)
    np.testing.assert_allclose(scores(model, IMAGE), scores(model, pixels), rtol=1e-4, atol=1e-5)
    assert attention_maps(filled(ViT(**{**SMALL, "patch": 1}), SHAPE), IMAGE)["encoder"].shape == (1, 2, 24, 24)


@pytest.mark.parametrize("position", [Learned2D(), Sinusoidal2D(), Rotary2D()], ids=str)
def test_grid_positions_take_the_size_of_the_image(position):
    # With too many columns, all six squares would be in one row.
    config = ViT(position=position, **SMALL)
    held = filled(config, SHAPE).encoder.position
    found = getattr(held, "config", held)
    assert found.columns == 3
    if isinstance(position, Learned2D):
        assert (found.rows, held.rows.shape, held.columns.shape) == (2, (2, 4), (3, 4))


def test_one_dimensional_positions_are_unchanged():
    assert patch_grid(Sinusoidal(), 2, 3) == Sinusoidal()
    assert patch_grid(Rotary2D(base=7.0), 2, 3) == Rotary2D(columns=3, base=7.0)


def test_a_class_token_works_as_well_as_the_mean():
    for pool in ("mean", "token"):
        model = filled(ViT(pool=pool, **SMALL), SHAPE)
        assert scores(model, IMAGE).shape == (3,)
        assert attention_maps(model, IMAGE)["encoder"].shape[-1] == 6 + (pool == "token")


def test_it_overfits_a_few_images():
    sources = np.random.default_rng(1).normal(size=(8, 4, 6, 1)).astype(np.float32)
    model = ViT(mechanism=Linear(), **{**SMALL, "width": 16}).create(jax.random.key(2), SHAPE)
    overfitted(model, lambda model: jax.vmap(model)(jnp.asarray(sources)), jnp.arange(8) % 3)


def test_invalid_fields_are_refused():
    with pytest.raises(ValueError, match=r"model.patch=0 must be at least 1"):
        ViT(patch=0)
    with pytest.raises(ValueError, match=r"model.patch=4 must divide the sides of the images, 4 × 6"):
        ViT(**{**SMALL, "patch": 4}).create(jax.random.key(0), SHAPE)
    with pytest.raises(ValueError, match=r"model=ViT needs images, but this task's data are sequences"):
        ViT(**SMALL).create(jax.random.key(0), Classes(Tokens(9, 9), 2))
    with pytest.raises(ValueError, match=r"supports 5 positions, but a sequence has 6"):
        ViT(position=Learned(length=5), **SMALL).create(jax.random.key(0), SHAPE)
