"""Discs, squares and triangles on a noisy background, drawn from a seed, with their exact bounding boxes."""

import hashlib

import numpy as np

from attnlab.data.images.scenes import Scene, Scenes
from attnlab.data.synthetic.figures import outside

# The bounding box of a figure of radius 1 around (0, 0): left, top, right, bottom; y grows downwards.
ENDS = {
    "disc": (-1, -1, 1, 1),
    "square": (-0.85, -0.85, 0.85, 0.85),
    "triangle": (-(3**0.5) / 2, -1, 3**0.5 / 2, 0.5),
}
CLASSES = tuple(ENDS)
RADIUS = 0.1, 0.2  # the range of radii, as shares of the shorter side
APART = 0.8  # the least distance between two centres, as a share of the sum of their radii
NOISE = 12  # the standard deviation of the background, in 0 … 255
TRIES = 50  # the number of attempts to place a figure


def draw(random: np.random.Generator, count: int, size: tuple[int, int], most: int) -> Scenes:
    """Draws images of figures.

    Each figure has a random colour that is lighter than the background. Figures may overlap a little. An image has
    fewer figures if no place is found for another one.

    Args:
      random: the generator.
      count: number of images.
      size: size of an image (rows, columns).
      most: the largest number of figures in an image. The number and the kinds are uniformly random.
    """
    return Scenes([_scene(random, str(n), size, most) for n in range(count)], {})


def _scene(random: np.random.Generator, name: str, size: tuple[int, int], most: int) -> Scene:
    """Draws one image."""
    rows, columns = size
    image = random.uniform(40, 90, 3) + random.normal(0, NOISE, (rows, columns, 3))
    y, x = np.mgrid[:rows, :columns] + 0.5
    places: list[np.ndarray] = []
    for _ in range(int(random.integers(1, most + 1))):
        if (place := _place(random, size, places)) is None:
            break
        places.append(place)
    labels = random.integers(len(CLASSES), size=len(places)).astype(np.int32)
    for label, (across, down, radius) in zip(labels, places, strict=True):
        # A pixel on the edge is coloured in proportion to the part of it that is inside.
        far = radius * outside(CLASSES[label], (x - across) / radius, (y - down) / radius)
        image += np.clip(0.5 - far, 0, 1)[..., None] * (random.uniform(130, 255, 3) - image)
    pixels = image.clip(0, 255).round().astype(np.uint8)
    boxes = np.array(
        [np.tile(place[:2], 2) + place[2] * np.array(ENDS[CLASSES[n]]) for n, place in zip(labels, places, strict=True)]
    )
    shares = (boxes / [columns, rows, columns, rows]).astype(np.float32)
    return Scene(name, pixels, shares, labels, hashlib.sha256(pixels.tobytes()).hexdigest())


def _place(random: np.random.Generator, size: tuple[int, int], others: list[np.ndarray]) -> np.ndarray | None:
    """Returns (x, y, radius) for another figure inside of the image and away from the others, or None."""
    for _ in range(TRIES):
        radius = min(size) * random.uniform(*RADIUS)
        centre = random.uniform(radius, np.array(size[::-1]) - radius)
        if all(np.hypot(*(centre - other[:2])) >= APART * (radius + other[2]) for other in others):
            return np.array([*centre, radius])
    return None
