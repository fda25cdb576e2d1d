"""Random convolution filters, and their responses to images of noise."""

import numpy as np

from attnlab.data.rng import generator


def kernel(seed: int, size: int, inputs: int, outputs: int) -> np.ndarray:
    """Draws the weights of a filter [size size inputs outputs].

    On average over outputs, the filter preserves the variance of noise.

    Args:
        seed: The seed of the weights.
        size: The sides of the filter, in pixels.
        inputs: The number of input channels.
        outputs: The number of output channels.
    """
    random = generator(seed, size, inputs, outputs)
    return random.standard_normal((size, size, inputs, outputs)) / np.sqrt(size * size * inputs)


def filtered(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Applies a filter to images.

    y_ab = Σ_nm x_{a+n−⌊(k−1)/2⌋, b+m−⌊(k−1)/2⌋} w_nm, as in `attnlab.ops.conv.conv_2d`.

    Args:
      images: the images [N H W C].
      weights: the weights [k k C D].

    Returns:
      The responses [N H W D], NaN at the border, where the filter reaches beyond the image.
    """
    size = len(weights)
    before, height, width = (size - 1) // 2, images.shape[1] - size + 1, images.shape[2] - size + 1
    inside = sum(
        images[:, n : n + height, m : m + width] @ weights[n, m] for n in range(size) for m in range(size)
    )  # fmt: skip
    found = np.full((*images.shape[:3], weights.shape[3]), np.nan)
    found[:, before : before + height, before : before + width] = inside
    return found
