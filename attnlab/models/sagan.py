"""The Self-Attention GAN (Zhang et al. 2019): a generator and a discriminator of images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism, Softmax
from attnlab.mechanisms.inputs import shape_of
from attnlab.models.checks import check_norm_eps, check_sizes
from attnlab.models.shapes import GeneratedImageShape, Shape, check_shape
from attnlab.modules.conv import Conv, GroupNorm
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.learned import extras, init_learned
from attnlab.modules.observable import Observable
from attnlab.modules.parameter import NoDecay
from attnlab.modules.spectral import normalised
from attnlab.modules.upsample import Upsample
from attnlab.ops.layer import relu
from attnlab.ops.mask import Full
from attnlab.ops.score import dot

NARROWER = 8  # Queries, keys and values have 1/8 of the channels of their input (section 3).
SLOPE = 0.1  # Slope of the discriminator's leaky ReLUs below zero (Miyato et al. 2018).


@dataclass(frozen=True)
class SAGAN(metaclass=Documented):
    """Configuration of a generator and a discriminator of images, with self-attention in both.

    Every weight of both is spectrally normalised. The generator has group norms instead of batch norms, because the
    statistics of a batch norm would be treated as parameters.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 32
    """Number of channels at the highest resolution below the image. Each halving doubles it."""
    mechanism: Mechanism | None = Softmax(score=dot)
    """The mechanism at half resolution, in both networks; must attend in both directions. None: no attention."""
    generator_lr_multiplier: float = 0.25
    """Learning rate of the generator divided by that of the discriminator (section 4: 1e-4 and 4e-4)."""
    norm_eps: float = 1e-5
    """The ε that the norms add to the variance, at least 1e-37 and below 1."""
    missing_values: ClassVar = {"norm_eps": 1e-6}
    """Values of fields that are missing in configurations of older versions."""

    def __post_init__(self):
        check_sizes(width=self.width)
        check_norm_eps(self.norm_eps)
        if not 0 < self.generator_lr_multiplier <= 1e6:
            raise ValueError(
                f"model.generator_lr_multiplier={self.generator_lr_multiplier} must be above 0, and at most 1000000"
            )
        if self.mechanism is None:
            return
        if not isinstance(self.mechanism, Mechanism):
            raise ValueError(
                f"model.mechanism={self.mechanism!r} must be a mechanism, for example MECHANISMS['softmax']"
            )
        if not self.mechanism.traits.non_causal:
            raise ValueError(
                f"model.mechanism={self.mechanism} supports only causal attention, but attention in an image sees all "
                "positions; use for example softmax"
            )

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """The mechanism of both networks, by role. Empty without attention."""
        return {} if self.mechanism is None else {"image": self.mechanism}

    @property
    def head_width(self) -> int:
        """The number of components of a query in the generator."""
        return _inner(2 * self.width)

    def create(self, key: PRNGKeyArray, shape: Shape) -> SAGANNetwork:
        """Create both networks for images of `shape` (`attnlab.tasks.vision.generation.Generated`).

        Raises:
            ValueError: The sides of the images are not divisible by 4.
        """
        shape = check_shape(self, shape, GeneratedImageShape)
        height, width = shape.image.height, shape.image.width
        if height % 4 or width % 4:
            raise ValueError(f"model=SAGAN needs images with sides divisible by 4, got {height} × {width}")
        return SAGANNetwork(key, self, shape)


class SAGANNetwork(nnx.Module):
    """The generator and the discriminator of a `SAGAN`. Call the normalised networks that `networks` returns."""

    def __init__(self, key: PRNGKeyArray, config: SAGAN, shape: GeneratedImageShape):
        self.config = config
        self.generator = Generator(fold_key(key, "generator"), config, shape)
        self.discriminator = Discriminator(fold_key(key, "discriminator"), config, shape)

    def networks(self) -> tuple[Generator, Discriminator]:
        """Return both networks with spectrally normalised weights. Call this once for all examples of a batch."""
        return normalised(self.generator), normalised(self.discriminator)

    def outputs_and_maps(self, latent: Float[Array, " Z"]) -> tuple[Float[Array, "H W C"], dict]:
        """Return the generated image, and the map {"image": [1 1 P P]} of the generator's attention, or None in it."""
        image, attention_map = normalised(self.generator).outputs_and_maps(latent)
        return image, {"image": None if attention_map is None else attention_map[None, None]}

    @property
    def lr_multipliers(self) -> dict[str, float]:
        """The learning rate of the generator divided by that of the discriminator (Heusel et al. 2017)."""
        return {"generator": self.config.generator_lr_multiplier}


class Generator(nnx.Module):
    """The generator: maps a random vector to an image, for one example.

    A linear map gives a quarter of the image's height and width. Two upsampling layers double them, and attention runs
    after the first.
    """

    def __init__(self, key: PRNGKeyArray, config: SAGAN, shape: GeneratedImageShape):
        width, image = config.width, shape.image
        self.first = Dense(fold_key(key, "first"), shape.latent, image.height // 4 * (image.width // 4) * 4 * width)
        self.norms = nnx.List(GroupNorm(n * width, epsilon=config.norm_eps) for n in (4, 2, 1))
        self.ups = nnx.List(
            [Upsample(fold_key(key, "up0"), 4 * width, 2 * width), Upsample(fold_key(key, "up1"), 2 * width, width)]
        )
        self.attention = _attention(fold_key(key, "attention"), config, 2 * width)
        self.last = Conv(fold_key(key, "last"), width, image.channels)
        self.quarter = (image.height // 4, image.width // 4)

    def __call__(self, latent: Float[Array, " Z"]) -> Float[Array, "H W C"]:
        """Return an image with values in 0 … 1."""
        return self.outputs_and_maps(latent)[0]

    def outputs_and_maps(self, latent: Float[Array, " Z"]) -> tuple[Float[Array, "H W C"], Float[Array, "P P"] | None]:
        """Return an image with values in 0 … 1, and the attention map, or None without an observer.

        The P positions of the map are those of the image at half resolution, row by row.
        """
        x = self.first(latent[None]).reshape(*self.quarter, -1)
        x = self.ups[0](relu(self.norms[0](x)))
        x, attention_map = _attended(self.attention, relu(self.norms[1](x)))
        x = self.ups[1](x)
        return (jnp.tanh(self.last(relu(self.norms[2](x)))) + 1) / 2, attention_map


class Discriminator(nnx.Module):
    """The discriminator: maps an image to one number that is higher for real images, for one example.

    Two strided convolutions halve the image's height and width, with attention after the first. The features are
    summed over positions.
    """

    def __init__(self, key: PRNGKeyArray, config: SAGAN, shape: GeneratedImageShape):
        width = config.width
        self.downs = nnx.List(
            [
                Conv(fold_key(key, "down0"), shape.image.channels, width, (4, 4), 2),
                Conv(fold_key(key, "down1"), width, 2 * width, (4, 4), 2),
            ]
        )
        self.attention = _attention(fold_key(key, "attention"), config, width)
        self.wide = Conv(fold_key(key, "wide"), 2 * width, 4 * width)
        self.last = Dense(fold_key(key, "last"), 4 * width, 1)

    def __call__(self, image: Float[Array, "H W C"]) -> Float[Array, ""]:
        """Return the score of an image with values in 0 … 1. A score above 0 means real."""
        x, _ = _attended(self.attention, _leaky(self.downs[0](2 * image - 1)))
        x = _leaky(self.wide(_leaky(self.downs[1](x))))
        return self.last(x.sum(axis=(0, 1))[None])[0, 0]


class ImageAttention(Observable):
    """Self-attention over the positions of an image: y = x + γ · attention(x) W_o (section 3, eqs. 1-3).

    Queries, keys and values are linear maps of x to an eighth of its channels. The mechanism's extra inputs are linear
    maps of x as well. The scalar γ is initialised to 0, so the network learns local features first. In the authors'
    code, values have half of the channels, and keys and values are maxima over squares of 2 × 2 positions.

    Args:
        key: Key for the initial parameters.
        width: Number D of channels.
        mechanism: The attention mechanism.
    """

    def __init__(self, key: PRNGKeyArray, width: int, mechanism: Mechanism):
        self.mechanism, inner = mechanism, _inner(width)
        shapes = {"q": (inner,), "k": (inner,), "v": (inner,)} | {
            name: shape_of(shape, inner, inner) for name, shape in {**mechanism.tokens, **mechanism.queries}.items()
        }
        self.shapes = tuple(shapes.items())
        self.maps = nnx.Dict(
            {name: Dense(fold_key(key, name), width, math.prod(shape), bias=False) for name, shape in self.shapes}
        )
        self.o = Dense(fold_key(key, "o"), inner, width, bias=False)
        self.learned = init_learned(mechanism, key, inner, inner)
        self.gamma = NoDecay(jnp.zeros(1))

    def __call__(self, x: Float[Array, "H W D"]) -> Float[Array, "H W D"]:
        """Return the output for one image."""
        return self.outputs_and_maps(x)[0]

    def outputs_and_maps(self, x: Float[Array, "H W D"]) -> tuple[Float[Array, "H W D"], Float[Array, "P P"] | None]:
        """Return the output, and the attention map of all positions row by row, or None without an observer."""
        positions = x.reshape(-1, x.shape[-1])
        inputs = {name: self.maps[name](positions).reshape(-1, *shape) for name, shape in self.shapes}
        q, k, v = (inputs.pop(name) for name in "qkv")
        extra: dict[str, PyTree] = inputs | extras(self.mechanism, self.learned)
        y = self.mechanism.attend(q, k, v, **extra)
        attention_map = self.observed(self.mechanism, q, k, Full(), **extra)
        return x + self.gamma[...][0] * self.o(y).reshape(x.shape), attention_map


def _attention(key: PRNGKeyArray, config: SAGAN, width: int) -> ImageAttention | None:
    return None if config.mechanism is None else ImageAttention(key, width, config.mechanism)


def _attended(
    attention: ImageAttention | None, x: Float[Array, "H W D"]
) -> tuple[Float[Array, "H W D"], Float[Array, "P P"] | None]:
    """Return the output of the attention and its map, or x and None without attention."""
    return (x, None) if attention is None else attention.outputs_and_maps(x)


def _inner(width: int) -> int:
    """Return the number of channels of queries, keys and values for inputs with `width` channels."""
    return max(1, width // NARROWER)


def _leaky(x: Float[Array, "..."]) -> Float[Array, "..."]:
    return jax.nn.leaky_relu(x, SLOPE)
