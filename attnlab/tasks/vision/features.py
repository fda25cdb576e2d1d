"""A small image classifier, trained on demand, whose hidden features are used to compare images."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from attnlab.data.images.labelled import Labelled
from attnlab.data.rng import generator

if TYPE_CHECKING:
    from jaxtyping import Array, Float

Weights = list[tuple[np.ndarray, np.ndarray]]
Level = tuple[np.float32, np.float32]
CHANNELS, FEATURES = (16, 32), 64
BATCH, RATE = 128, 2e-3
AT_ONCE = 500  # images that are processed together


class Features:
    """Two 3 × 3 convolutions with stride 2, a layer of 64 units and an output layer, with ReLU between them.

    The classifier is trained by Adam on batches of 128 labelled images. The learning rate decays from 2e-3 to 0 as a
    cosine. The initial weights and the order of the images are always the same. The result is reproducible on one
    machine; on another machine it differs by rounding.

    The features of an image are the 64 activations after the ReLU, scaled so that their variances over the training
    images have mean 1.

    Args:
        train: The labelled images to train on.
        classes: The number of classes.
        steps: The number of training steps.
    """

    def __init__(self, train: Labelled, classes: int, steps: int):
        random = generator(0)
        some = train.images[:: max(1, len(train.images) // 10_000)]
        self._level = np.float32(some.mean() / 255), np.float32(max(some.std(), 1) / 255)
        self._weights = _fitted(_begun(random, train.images.shape[1:], classes), train, self._level, steps, random)
        self._scale = 1.0
        self._scale = float(np.sqrt(self(some / np.float32(255))[0].var(axis=0).mean())) or 1.0

    def __call__(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns features [N 64] and class probabilities [N classes] in float64.

        Args:
            images: Images [N H W C] with values in 0 … 1.
        """
        import jax

        look, found = jax.jit(partial(_look, level=self._level)), []
        for first in range(0, len(images), AT_ONCE):
            some = np.asarray(images[first : first + AT_ONCE], np.float32)
            # Padded, so that one compiled program serves all batches.
            padded = np.pad(some, ((0, AT_ONCE - len(some)), (0, 0), (0, 0), (0, 0)))
            features, scores = look(self._weights, padded)
            chances = jax.nn.softmax(scores)
            found.append([np.asarray(x, np.float64)[: len(some)] for x in (features, chances)])
        features, chances = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return features / self._scale, chances


def _begun(random: np.random.Generator, size: tuple[int, ...], classes: int) -> Weights:
    """Returns the initial weights (normal with variance 2/in, He et al. 2015) and biases (zero) of each layer."""
    height, width, channels = size
    places = -(-height // 4) * -(-width // 4)
    first, second = CHANNELS
    shapes = [(3, 3, channels, first), (3, 3, first, second), (places * second, FEATURES), (FEATURES, classes)]
    drawn = lambda shape: random.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / np.prod(shape[:-1])))
    return [(drawn(shape), np.zeros(shape[-1], np.float32)) for shape in shapes]


def _look(
    weights: Weights, images: Float[Array, "N H W C"], level: Level
) -> tuple[Float[Array, "N F"], Float[Array, "N classes"]]:
    """Returns features [N F] and scores [N classes] of images in 0 … 1."""
    import jax

    x = (images - level[0]) / level[1]
    *convolutions, inner, outer = weights
    for w, b in convolutions:
        x = jax.lax.conv_general_dilated(
            x, jax.numpy.asarray(w), (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + b[None, None, None])
    x = jax.nn.relu(x.reshape(len(x), -1) @ inner[0] + inner[1][None])
    return x, x @ outer[0] + outer[1][None]


def _fitted(weights: Weights, train: Labelled, level: Level, steps: int, random: np.random.Generator) -> Weights:
    import jax
    import optax

    adam = optax.adam(optax.cosine_decay_schedule(RATE, steps))

    def loss(weights, images, labels):
        scores = _look(weights, images.astype(np.float32) / 255, level)[1]
        return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()

    @jax.jit
    def step(weights, memory, images, labels):
        change, memory = adam.update(jax.grad(loss)(weights, images, labels), memory)
        return optax.apply_updates(weights, change), memory

    memory = adam.init(weights)
    for _ in range(steps):
        rows = random.integers(len(train.labels), size=BATCH)
        weights, memory = step(weights, memory, train.images[rows], train.labels[rows])
    return weights
