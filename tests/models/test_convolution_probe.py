import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.mechanisms import Delta, Linear
from attnlab.models import MODELS, ConvolutionProbe
from attnlab.modules.position import POSITIONS, Floater, Learned, Learned2D, Position, Quadratic2D
from attnlab.ops.conv import conv_2d
from attnlab.tasks.base.shapes import Image, Tokens
from attnlab.tasks.synthetic.filtering import ConvolutionShape

from .training import filled

C, SIDE = 2, 5
SHAPE = ConvolutionShape(Image(SIDE, SIDE, C), C)
CONFIG = ConvolutionProbe(width=18, heads=9)
IMAGE = np.random.default_rng(0).standard_normal((SIDE, SIDE, C)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).standard_normal((3, 3, C, C)).astype(np.float32)


def constructed():
    """Builds the layer of theorem 1.

    Head h copies the channels of the pixel at its own offset, and the last projection applies the weights.
    """
    model = jax.tree.map(jnp.zeros_like, CONFIG.create(jax.random.key(0), SHAPE))
    model.input_layer.w[...] = jnp.eye(C, 18)
    copy, mixed = np.zeros((18, 18), np.float32), np.zeros((18, 18), np.float32)
    for h in range(9):
        copy[:C, h * C : (h + 1) * C] = np.eye(C)
        mixed[h * C : (h + 1) * C, :C] = WEIGHTS[h // 3, h % 3]
    model.attention.v.w[...], model.attention.o.w[...] = jnp.asarray(copy), jnp.asarray(mixed)
    model.head.w[...] = jnp.eye(18, C)
    model.position.centres[...] = jnp.array([(h // 3 - 1.0, h % 3 - 1.0) for h in range(9)])
    model.position.sharpness[...] = jnp.full(9, 60.0)
    return model


def test_it_is_registered():
    assert MODELS["convolution-probe"] == ConvolutionProbe()


def test_self_attention_contains_convolution():
    found = jax.jit(lambda: constructed()(jnp.asarray(IMAGE)))()
    wanted = conv_2d(jnp.asarray(IMAGE), jnp.asarray(WEIGHTS))
    np.testing.assert_allclose(found[1:-1, 1:-1], wanted[1:-1, 1:-1], rtol=1e-5, atol=1e-5)
    # At the border, a convolution sees zeros and attention sees the nearest pixel.
    assert np.abs(found - wanted)[0].max() > 0.1


def test_each_head_attends_to_its_own_pixel():
    seen = attention_maps(constructed(), jnp.asarray(IMAGE), None)["encoder"]
    assert seen.shape == (1, 9, 25, 25)
    centre = SIDE * 2 + 2
    for h in range(9):
        at = (2 + h // 3 - 1) * SIDE + 2 + h % 3 - 1
        assert seen[0, h, centre, at] == pytest.approx(1, abs=1e-6)


def moved(position):
    """Returns the difference between outputs and outputs for permuted pixels, in the original order."""
    model = filled(ConvolutionProbe(width=18, heads=9, position=position), SHAPE)
    order = np.random.default_rng(2).permutation(SIDE * SIDE)
    shuffled = IMAGE.reshape(-1, C)[order].reshape(IMAGE.shape)
    answers = jax.jit(lambda model, image: model(image).reshape(-1, C))
    return float(np.abs(answers(model, shuffled) - answers(model, IMAGE)[order]).max())


def test_without_positions_it_ignores_the_order_of_pixels():
    assert moved(Position()) < 1e-4


@pytest.mark.parametrize("position", [Floater(), Floater(place="input"), Learned2D(), Learned(length=25)], ids=str)
def test_with_positions_it_depends_on_the_order_of_pixels(position):
    assert moved(position) > 1e-2


def test_the_grid_has_the_size_of_the_image():
    wide = ConvolutionShape(Image(2, 7, C), C)
    assert filled(CONFIG, wide).position.config == Quadratic2D(columns=7)
    assert filled(ConvolutionProbe(width=18, heads=9, position=Learned2D()), wide).position.config == Learned2D(
        rows=2, columns=7
    )


def test_a_position_shorter_than_the_image_is_refused():
    with pytest.raises(ValueError, match="24"):
        ConvolutionProbe(width=18, heads=9, position=Learned(length=24)).create(jax.random.key(0), SHAPE)


def test_invalid_fields_are_refused():
    with pytest.raises(ValueError, match=r"model.heads=9 must divide model.width=16"):
        ConvolutionProbe(width=16)
    with pytest.raises(
        ValueError, match=r"model.position=Quadratic2D\(.*\) is not supported by .*does not support a bias"
    ):
        ConvolutionProbe(mechanism=Linear())
    with pytest.raises(ValueError, match=r"model.mechanism=Delta\(.*\) supports only causal attention"):
        ConvolutionProbe(mechanism=Delta(), position=POSITIONS["none"])
    with pytest.raises(ValueError, match=r"model=ConvolutionProbe needs data with source, channels"):
        ConvolutionProbe().create(jax.random.key(0), Tokens(5, 5))
    with pytest.raises(ValueError, match=r"supports 4 positions, but a sequence has 25"):
        filled(ConvolutionProbe(width=18, heads=9, position=Learned(length=4)), SHAPE)(jnp.asarray(IMAGE))
