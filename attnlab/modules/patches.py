"""Patch embedding: an image as a sequence of vectors."""

from flax import nnx
from jaxtyping import Array, Float

from attnlab.modules.dense import Dense


class Patches(nnx.Module):
    """Patch embedding (Dosovitskiy et al. 2021, eq. 1): splits an image [H W C] and maps every patch to a vector [D].

    Args:
        patch: Side of a patch in pixels; must divide both sides of the image.
        dense: Linear map from patch · patch · C numbers to D. Its inputs are the pixels row by row, with the channels
            of a pixel next to each other.
    """

    def __init__(self, patch: int, dense: Dense):
        self.patch, self.dense = patch, dense

    def __call__(self, image: Float[Array, "H W C"]) -> Float[Array, "T D"]:
        """Return the vectors of the T = H W / patch² patches, row by row, in the dtype of the image."""
        return self.dense(split_patches(image, self.patch))


def split_patches(image: Float[Array, "H W C"], patch: int) -> Float[Array, "T F"]:
    """Return the patches of `patch` × `patch` pixels row by row, each flattened to F = patch · patch · C numbers.

    Raises:
        ValueError: `patch` does not divide both sides of the image.
    """
    height, width, channels = image.shape
    if height % patch or width % patch:
        raise ValueError(f"{patch=} must divide the image's sides, {height} × {width}")
    tiles = image.reshape(height // patch, patch, width // patch, patch, channels)
    return tiles.transpose(0, 2, 1, 3, 4).reshape(-1, patch * patch * channels)
