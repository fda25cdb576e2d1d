"""A filter drawn at random, and what it makes of images of noise."""

import numpy as np

from attnlab.data.rng import generator


def kernel(seed: int, size: int, inputs: int, outputs: int) -> np.ndarray:
    """The weights [size size inputs outputs] of a filter; in the mean over outputs it keeps the variance of noise."""
    random = generator(seed, size, inputs, outputs)
    return random.standard_normal((size, size, inputs, outputs)) / np.sqrt(size * size * inputs)


def filtered(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What the filter makes of images [N H W C], as far as it lies within them whole: [N H W D], NaN at the border.

    y_ab = Σ_nm x_{a+n−⌊(k−1)/2⌋, b+m−⌊(k−1)/2⌋} w_nm, as in `attnlab.ops.conv.conv_2d`.
    """
    size = len(weights)
    before, height, width = (size - 1) // 2, images.shape[1] - size + 1, images.shape[2] - size + 1
    inside = sum(
        images[:, n : n + height, m : m + width] @ weights[n, m] for n in range(size) for m in range(size)
    )  # fmt: skip
    found = np.full((*images.shape[:3], weights.shape[3]), np.nan)
    found[:, before : before + height, before : before + width] = inside
    return found
