"""Images with boxes as arrays: padded, flipped, and their digest."""

import hashlib
from collections.abc import Mapping

import numpy as np

from attnlab.data.images.scenes import Scene
from attnlab.data.names import PARTS
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.vision.boxes import centred

NONE = -1  # the label of a box that does not exist


def padded(found: list[Scene], most: int) -> Batch:
    """Returns images with their boxes as one batch, padded to `most` boxes each.

    Args:
        found: N images of one size.
        most: M, the number of boxes after padding.

    Returns:
        {"image": [N H W 3], "boxes": [N M 4] as centred (x, y, width, height), "label": [N M]}. A label of −1 means no
        box.
    """
    boxes, labels = np.zeros((len(found), most, 4), np.float32), np.full((len(found), most), NONE, np.int32)
    for n, scene in enumerate(found):
        boxes[n, : len(scene.boxes)], labels[n, : len(scene.boxes)] = centred(scene.boxes), scene.labels
    return {"image": np.stack([scene.image for scene in found]), "boxes": boxes, "label": labels}


def flipped(batch: Batch, across: np.ndarray, down: np.ndarray) -> Batch:
    """Flips images and their boxes horizontally, vertically, or both.

    Args:
        batch: "image" [B H W 3], "boxes" [B M 4] as centred (x, y, width, height) in fractions of the image, and other
            arrays.
        across: Which images are flipped horizontally, [B].
        down: Which images are flipped vertically, [B].

    Returns:
        A new batch. Other arrays are unchanged.
    """
    image, boxes = batch["image"], batch["boxes"]
    image = np.where(across[:, None, None, None], image[:, :, ::-1], image)
    image = np.where(down[:, None, None, None], image[:, ::-1], image)
    turned = np.stack([across, down], axis=1)[:, None, :]
    middle = np.where(turned, 1 - boxes[..., :2], boxes[..., :2])
    return batch | {"image": image, "boxes": np.concatenate([middle, boxes[..., 2:]], axis=-1)}


def box_fingerprint(parts: Mapping[str, list[Scene]], *size: int) -> str:
    """Returns a digest of the files of all parts, of their boxes and labels, and of the size of the images."""
    digest = hashlib.sha256(repr(size).encode())
    for part in PARTS:
        for scene in parts[part]:
            # `digest` is that of the file. The decoded pixels may differ in their last bits between decoder versions.
            digest.update(f"{part} {scene.name} {scene.digest} {len(scene.boxes)} ".encode())
            digest.update(scene.boxes.tobytes() + scene.labels.tobytes())
    return digest.hexdigest()
