from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.cost import parameters
from attnlab.analysis.maps import attention_maps, with_maps
from attnlab.mechanisms import MECHANISMS
from attnlab.models.sagan import SAGAN, ImageAttention
from attnlab.modules.spectral import normalised
from attnlab.ops.layer import relu
from attnlab.tasks.base.shapes import Image, Tokens
from attnlab.tasks.vision.generation import Generated, ImageGeneration

from .kinds import one_of_each
from .training import filled

SHAPE = SimpleNamespace(image=Image(8, 8, 1), latent=5)
SMALL = SAGAN(width=8)
rng = np.random.default_rng(0)
LATENT = jnp.asarray(rng.standard_normal(5), jnp.float32)
IMAGE = jnp.asarray(rng.random((8, 8, 1)), jnp.float32)


@jax.jit
def played(model, latent, image):
    """Returns a generated image, and the discriminator's scores of it and of a given image."""
    generator, discriminator = model.networks()
    made = generator(latent)
    return made, discriminator(made), discriminator(image)


class Attentive(NamedTuple):
    """Wraps the attention as a config for `filled`."""

    mechanism: Any

    def create(self, key, shape):
        return ImageAttention(key, 16, self.mechanism)


def changed(model, change):
    """Returns the network after `change(path, leaf)` is applied to each leaf."""
    named = lambda path, leaf: change(jax.tree_util.keystr(path, simple=True, separator="."), leaf)
    return jax.tree_util.tree_map_with_path(named, model)


def test_an_image_and_a_number():
    for mechanism in (SMALL.mechanism, None):
        made, fake, real = played(filled(SAGAN(width=8, mechanism=mechanism), SHAPE), LATENT, IMAGE)
        assert made.shape == (8, 8, 1)
        assert made.dtype == jnp.float32
        assert 0 <= made.min() < made.max() <= 1
        assert fake.shape == real.shape == ()


def test_the_scale_of_a_weight_has_no_effect():
    model = filled(SMALL, SHAPE)
    larger = changed(model, lambda name, leaf: 5 * leaf if leaf.ndim > 1 else leaf)
    for a, b in zip(played(model, LATENT, IMAGE), played(larger, LATENT, IMAGE), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_attention_has_an_initial_gain_of_zero_and_is_learned():
    attention = jax.jit(lambda: ImageAttention(jax.random.key(0), 16, SMALL.mechanism))()
    image = jnp.ones((2, 2, 16))
    np.testing.assert_array_equal(attention(image), image)
    quiet = changed(filled(SMALL, SHAPE), lambda name, leaf: 0 * leaf if "gamma" in name else leaf)
    other = changed(quiet, lambda name, leaf: leaf[..., ::-1] if "attention.maps" in name else leaf)
    for a, b in zip(played(quiet, LATENT, IMAGE), played(other, LATENT, IMAGE), strict=True):
        np.testing.assert_array_equal(a, b)
    gradient = jax.jit(jax.grad(lambda model: played(model, LATENT, IMAGE)[1]))(quiet)
    assert gradient.generator.attention.gamma[...] != 0
    assert gradient.discriminator.attention.gamma[...] != 0


def test_each_player_learns_from_its_own_loss_alone():
    shape = Generated(Image(4, 4, 1), 2)
    model = filled(SAGAN(width=4), shape)
    source, latent = rng.integers(256, size=(3, 4, 4, 1)).astype(np.uint8), rng.standard_normal((3, 2))
    batch = {"source": source, "latent": latent.astype(np.float32)}
    play = object.__new__(ImageGeneration).loss

    def alone(part, found):
        """Returns the gradient of one network's loss, with the other network fixed."""

        def loss(mine):
            held = jax.lax.stop_gradient({"generator": model.generator, "discriminator": model.discriminator})
            parts = SimpleNamespace(**held | {part: mine})
            both = lambda: (normalised(parts.generator), normalised(parts.discriminator))
            return play(SimpleNamespace(networks=both), batch, None)[1][found]

        return jax.grad(loss)(getattr(model, part))

    @jax.jit
    def gradients():
        whole = jax.grad(lambda model: play(model, batch, None)[0])(model)
        return whole, alone("generator", "g_loss"), alone("discriminator", "d_loss")

    whole, *each = gradients()
    for part, alone in zip((whole.generator, whole.discriminator), each, strict=True):
        for a, b in zip(jax.tree.leaves(part), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        assert any(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(alone))


def test_attention_equals_the_published_equation():
    """Checks s = (x W_q)(x W_k)ᵀ, unscaled, and y = γ softmax(s) (x W_v) W_o + x, over all positions."""
    attention = ImageAttention(jax.random.key(0), 16, SMALL.mechanism)
    attention.gamma[...] = jnp.asarray([0.7])
    image = rng.standard_normal((2, 3, 16)).astype(np.float32)
    x = image.reshape(6, 16)
    q, k, v = (x @ np.asarray(attention.maps[name].w[...]) for name in "qkv")
    assert q.shape == (6, 2)
    weights = np.exp(q @ k.T)
    o = weights / weights.sum(axis=1, keepdims=True) @ v @ np.asarray(attention.o.w[...])
    np.testing.assert_allclose(jax.jit(attention)(image), (x + 0.7 * o).reshape(image.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", one_of_each(lambda mechanism: mechanism.traits.non_causal))
def test_every_bidirectional_mechanism_can_be_used(name):
    attention = filled(Attentive(MECHANISMS[name].with_length(16)), SHAPE)
    image = rng.standard_normal((4, 4, 16)).astype(np.float32)
    found = jax.jit(lambda attention, image: attention(image))(attention, image)
    assert np.isfinite(found).all()
    assert np.abs(found - image).max() > 1e-3


def test_a_negative_feature_of_the_discriminator_counts_a_tenth():
    """Without weights, its features are the leaky ReLUs of the last biases at each of the 2 × 2 positions."""
    model = filled(SAGAN(width=8, mechanism=None), SHAPE)
    model = changed(model, lambda name, leaf: 0 * leaf if "discriminator" in name and leaf.ndim > 2 else leaf)
    discriminator = model.discriminator
    b, w = np.asarray(discriminator.wide.b[...]), np.asarray(discriminator.last.w[...])[:, 0]
    assert (b < 0).any()
    expected = 4 * np.where(b > 0, b, b / 10) @ w / np.sqrt(w @ w) + discriminator.last.b[...][0]
    np.testing.assert_allclose(played(model, LATENT, IMAGE)[2], expected, rtol=1e-5)


def test_only_the_generator_has_another_learning_rate():
    model = filled(SAGAN(width=8, generator_lr_multiplier=0.5, mechanism=None), SHAPE)
    assert model.lr_multipliers == {"generator": 0.5}
    assert set(vars(model)) >= set(model.lr_multipliers)


def test_attention_has_few_parameters():
    with_, without = (
        parameters(jax.eval_shape(lambda c=c: c.create(jax.random.key(0), SHAPE)))
        for c in (SAGAN(width=16), SAGAN(width=16, mechanism=None))
    )
    # Four projections and γ: from 32 channels to 4 in the generator, and from 16 to 2 in the discriminator.
    assert with_ - without == 4 * 32 * 4 + 1 + 4 * 16 * 2 + 1
    assert SAGAN(mechanism=None).attentions == {}


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"width": 0}, r"model\.width=0"),
        ({"generator_lr_multiplier": 0.0}, r"model\.generator_lr_multiplier=0\.0"),
        ({"mechanism": MECHANISMS["delta"]}, "supports only causal attention"),
    ],
)
def test_invalid_fields_are_refused(fields, refusal):
    with pytest.raises(ValueError, match=refusal):
        SAGAN(**fields)


def test_other_data_and_image_sizes_are_refused():
    with pytest.raises(ValueError, match="model=SAGAN needs data with image, latent"):
        SMALL.create(jax.random.key(0), Tokens(9, 9))
    with pytest.raises(ValueError, match="needs images with sides divisible by 4, got 8 × 6"):
        SMALL.create(jax.random.key(0), SimpleNamespace(image=Image(8, 6, 1), latent=5))


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "window"])
def test_attention_maps_of_the_generator_are_its_weights(mechanism):
    config = SAGAN(width=8, mechanism=MECHANISMS[mechanism])
    model = filled(config, SHAPE)
    (seen,) = attention_maps(model, LATENT).values()
    assert seen.shape == (1, 1, 16, 16), "4 x 4 places"
    np.testing.assert_allclose(seen.sum(axis=-1), 1, rtol=1e-5)
    output = jax.jit(lambda model: with_maps(model).outputs_and_maps(LATENT)[0])(model)
    np.testing.assert_allclose(output, played(model, LATENT, IMAGE)[0], rtol=1e-5)

    @jax.jit
    def by_hand(model, seen):
        """Returns the output of the attention, and the same computed from the map and from the attention's input."""
        generator, _ = model.networks()
        x = generator.ups[0](relu(generator.norms[0](generator.first(LATENT[None]).reshape(2, 2, -1))))
        x = relu(generator.norms[1](x))
        own = generator.attention
        places = x.reshape(-1, x.shape[-1])
        mixed = own.o(seen[0, 0] @ own.maps["v"](places)).reshape(x.shape)
        return own(x), x + own.gamma[...][0] * mixed

    np.testing.assert_allclose(*by_hand(model, seen), rtol=1e-4, atol=1e-5)


def test_without_attention_there_is_no_map():
    config = SAGAN(width=8, mechanism=None)
    assert attention_maps(filled(config, SHAPE), LATENT) == {"image": None}
