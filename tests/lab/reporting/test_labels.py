from itertools import combinations

import numpy as np
import pytest

from attnlab.lab.reporting.labels import DOT, GAP, LINE, LONGEST, _overlap, place, short, wide

NAMES = [f"variant-{n:02}" for n in range(20)]


def boxes(points, spots, names):
    for (x, y), spot, name in zip(points, spots, names, strict=True):
        assert spot is not None
        start = x + GAP if spot.side > 0 else x - GAP - wide(name)
        yield start, y + spot.shift - LINE / 2, start + wide(name), y + spot.shift + LINE / 2


def placed(points, names=NAMES):
    return place(points, [(y, y) for _, y in points], names[: len(points)], 330, 0, 290)


def touch(a, b):
    return min(a[2], b[2]) - max(a[0], b[0]) > 1e-9 and min(a[3], b[3]) - max(a[1], b[1]) > 1e-9


def test_the_overlap_is_the_sum_of_the_areas_that_are_covered():
    draw = np.random.default_rng(0).uniform
    boxes, others = (np.concatenate([low := draw(0, 300, (n, 2)), low + draw(1, 60, (n, 2))], 1) for n in (9, 200))
    covered = [
        sum(max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1])) for b in others)
        for a in boxes
    ]
    assert 0 < np.count_nonzero(covered) < 9
    np.testing.assert_allclose(_overlap(boxes, others), covered, rtol=1e-12)
    np.testing.assert_array_equal(_overlap(boxes, others[:0]), np.zeros(9))
    np.testing.assert_array_equal(_overlap(boxes, others + 1000), np.zeros(9))


@pytest.mark.parametrize("seed", range(8))
def test_twenty_labels_do_not_overlap_and_stay_on_the_page(seed):
    random = np.random.default_rng(seed)
    points = list(zip(random.uniform(60, 310, 20), random.uniform(20, 280, 20), strict=True))
    found = list(boxes(points, placed(points), NAMES))
    assert not [pair for pair in combinations(found, 2) if touch(*pair)]
    # On a phone, the page has a margin of 16 pixels. Labels in a full corner may extend into it.
    assert all(box[0] >= -16 and box[2] <= 346 and box[1] >= 0 and box[3] <= 290 for box in found)


def test_labels_of_equal_points_are_spread():
    points = [(200.0, 150.0)] * 20
    found = list(boxes(points, placed(points), NAMES))
    assert not [pair for pair in combinations(found, 2) if touch(*pair)]


def test_a_label_is_to_the_right_of_its_point_if_there_is_room():
    (spot,) = placed([(100.0, 100.0)])
    assert (spot.side, spot.shift) == (1, 0)
    (spot,) = placed([(320.0, 100.0)])
    assert (spot.side, spot.shift) == (-1, 0)
    spots = place(
        [(100.0, 100.0), (130.0, 100.0)], [(100, 100), (100 - 5 * DOT, 100 + 5 * DOT)], NAMES[:2], 330, 0, 290
    )
    assert spots[0].side == -1


def test_a_label_without_room_is_not_placed():
    points = [(x, y) for x in range(100, 200, 5) for y in range(100, 200, 5)]
    spots = placed(points, ["variant"] * len(points))
    found = [(point, spot) for point, spot in zip(points, spots, strict=True) if spot is not None]
    assert 0 < len(found) < len(points)
    written = list(boxes(*zip(*found, strict=True), ["variant"] * len(found)))
    assert not [pair for pair in combinations(written, 2) if touch(*pair)]


def test_long_names_are_cut_and_wide_letters_counted():
    assert short("x" * 40) == "x" * (LONGEST - 1) + "…"
    assert short("softmax\n\ud800") == "softmax··"
    assert wide("日本") == wide("abcd")
