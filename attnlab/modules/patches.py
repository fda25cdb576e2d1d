"""An image as a sequence of vectors."""

from flax import nnx
from jaxtyping import Array, Float

from attnlab.modules.dense import Dense


class Patches(nnx.Module):
    """Squares of an image, row by row, each flattened and mapped: [H W C] -> [T D] (Dosovitskiy et al. 2021, eq. 1).

    `dense` takes patch · patch · C numbers, the pixels of a square row by row, the numbers of each side by side.
    """

    def __init__(self, patch: int, dense: Dense):
        self.patch, self.dense = patch, dense

    def __call__(self, image: Float[Array, "H W C"]) -> Float[Array, "T D"]:
        """One example, in the dtype of the image; T = H W / patch²."""
        return self.dense(split_patches(image, self.patch))


def split_patches(image: Float[Array, "H W C"], patch: int) -> Float[Array, "T F"]:
    """The squares of `patch` × `patch` pixels, row by row, each flattened: F = patch · patch · C.

    Raises ValueError where the patch does not divide both sides.
    """
    height, width, channels = image.shape
    if height % patch or width % patch:
        raise ValueError(f"{patch=} must divide the image's sides, {height} × {width}")
    tiles = image.reshape(height // patch, patch, width // patch, patch, channels)
    return tiles.transpose(0, 2, 1, 3, 4).reshape(-1, patch * patch * channels)
