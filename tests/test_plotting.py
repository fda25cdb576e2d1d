from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from attnlab.plotting import COLOURS, Box, grid


def opened(png):
    return np.asarray(Image.open(BytesIO(png)).convert("RGB")).astype(int)


def test_images_of_three_kinds_are_in_a_row():
    black = np.zeros((4, 4, 1), np.uint8)
    red = np.tile(np.array([1.0, 0, 0]), (4, 4, 1))
    picture = opened(grid([black, red, np.full((4, 4), 255, np.uint8)], columns=2))
    height, width = picture.shape[:2]
    colours = [
        picture[row, column].tolist()
        for row in (height // 4, 3 * height // 4)
        for column in (width // 4, 3 * width // 4)
    ]
    # The last tile is empty.
    assert colours == [[0, 0, 0], [255, 0, 0], [255, 255, 255], [255, 255, 255]]


def test_numbers_keep_their_range():
    grey = opened(grid([np.full((4, 4), 0.5)]))
    middle = grey[grey.shape[0] // 2, grey.shape[1] // 2]
    assert abs(middle - 128).max() <= 2


def test_boxes_are_drawn_where_they_are():
    blank = np.full((40, 40), 1.0)
    plain, boxed = (
        opened(grid([blank], boxes=[boxes], side=4)) for boxes in ([], [Box((0.25, 0.25, 0.75, 0.75), colour=1)])
    )
    changed = np.argwhere(np.abs(plain - boxed).max(axis=-1) > 60)
    side = np.array(plain.shape[:2])
    np.testing.assert_allclose(changed.min(axis=0) / side, 0.25, atol=0.03)
    np.testing.assert_allclose(changed.max(axis=0) / side, 0.75, atol=0.03)
    blue = np.array([int(COLOURS[1][n : n + 2], 16) for n in (1, 3, 5)])
    assert (np.abs(boxed - blue).max(axis=-1) < 30).any()


@pytest.mark.parametrize("name", ["$_$", "$5_$10"])
def test_dollars_in_a_name_are_dollars(name):
    blank = np.full((40, 40), 1.0)
    other = name.replace("$", "S")
    # No part of the label is lowered, slanted or omitted: it is as wide as with other letters.
    for one in (
        lambda name: grid([blank], [name], side=4),
        lambda name: grid([blank], boxes=[[Box((0, 0.5, 1, 1), name)]]),
    ):
        dark = [np.argwhere((opened(one(each)) < 100).any(axis=-1)) for each in (name, other)]
        wide, tall = ([np.ptp(each[:, axis]) for each in dark] for axis in (1, 0))
        assert abs(wide[0] - wide[1]) <= 6
        assert abs(tall[0] - tall[1]) <= 6


def test_the_same_picture_is_the_same_bytes():
    images = [np.eye(5)]
    assert grid(images, ["one"]) == grid(images, ["one"])
