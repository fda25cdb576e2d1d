import numpy as np
import pytest

from attnlab.tasks.vision.average_precision import MOST, THRESHOLDS, Marks, average_precision, matched

HALF = np.array([0.5])
NOWHERE = np.zeros((0, 4))


def box(x, width=10.0):
    """Returns a box of height 10 that begins at x. Two boxes of width 10 at distance s have IoU (10 − s) / (10 + s)."""
    return [x, 0.0, x + width, 10.0]


def found(*boxes, scores, labels=None):
    return Marks(
        np.array(boxes).reshape(-1, 4),
        np.array([0] * len(boxes) if labels is None else labels, int),
        np.array(scores, float),
    )


def truth(*boxes, labels=None):
    return Marks(np.array(boxes).reshape(-1, 4), np.array([0] * len(boxes) if labels is None else labels, int))


def ap(seen, there, thresholds=HALF, classes=1):
    return average_precision(
        [seen] if isinstance(seen, Marks) else seen, there if isinstance(there, list) else [there], classes, thresholds
    )


def test_exact_boxes_score_one_at_every_threshold():
    there = truth(box(0), box(100))
    np.testing.assert_array_equal(ap(found(*there.corners, scores=[0.9, 0.8]), there, THRESHOLDS), 1)


def test_wrong_between_right_by_hand():
    """Two true boxes; right, wrong, right. The precision is 1 at the 51 recalls up to 1/2, then 2/3 at 50 recalls."""
    seen = found(box(0), box(500), box(100), scores=[0.9, 0.8, 0.7])
    np.testing.assert_allclose(ap(seen, truth(box(0), box(100))), (51 + 50 * 2 / 3) / 101)


def test_wrong_before_right_by_hand():
    """Three true boxes; wrong, right, right. The best precision at or beyond recalls 1/3 and 2/3 is 2/3, then zero."""
    seen = found(box(500), box(0), box(100), scores=[0.9, 0.8, 0.7])
    np.testing.assert_allclose(ap(seen, truth(box(0), box(100), box(200))), 67 * (2 / 3) / 101)


def test_a_true_box_is_matched_once():
    """A second box on the same true box is wrong. It lowers no precision if recall 1 is reached before it."""
    seen = found(box(0), box(1), box(100), scores=[0.9, 0.8, 0.7])
    np.testing.assert_allclose(ap(seen, truth(box(0), box(100))), (51 + 50 * 2 / 3) / 101)
    np.testing.assert_allclose(ap(found(box(0), box(1), scores=[0.9, 0.8]), truth(box(0))), 1)


def test_the_highest_score_is_matched_first_with_the_largest_overlap():
    # The IoU is 9/11 at distance 1, and 7/13 at distance 3. The first box takes the second truth. This leaves the first
    # truth to the second box, with an IoU of 1/3.
    overlaps = np.array([[7 / 13, 9 / 11], [1 / 3, 0.9]])
    np.testing.assert_array_equal(matched(overlaps, HALF), [[True, False]])
    np.testing.assert_array_equal(matched(overlaps[::-1], HALF), [[True, True]])
    # A higher threshold leaves the second truth to the second box, which fits it.
    np.testing.assert_array_equal(matched(overlaps, np.array([0.3, 0.85])), [[True, True], [False, True]])


def test_of_equal_overlaps_the_last_is_matched():
    np.testing.assert_array_equal(matched(np.array([[0.6, 0.6], [0.0, 0.7]]), HALF), [[True, False]])


def test_thresholds_are_reached_or_not():
    """At distance 2 the IoU is 8/12. The box is right at thresholds .5, .55, .6 and .65, and wrong from .7 on."""
    value = ap(found(box(2), scores=[0.5]), truth(box(0)), THRESHOLDS)
    np.testing.assert_array_equal(value[:, 0], [1] * 4 + [0] * 6)
    # An IoU of exactly 1/2 reaches the threshold of 1/2.
    assert ap(found(box(0, width=5), scores=[0.5]), truth(box(0))) == 1


def test_thresholds_apply_to_relative_boxes():
    """A box of (10 − s) × 10 pixels inside one of 10 × 10 pixels has an IoU of 1 − s / 10, also in float32."""
    for s in range(1, 6):
        for left in range(600):
            there, seen = box(left), box(left, width=10 - s)
            sides = np.array([640, 480, 640, 480])
            shares = [found(seen / sides, scores=[0.5]), truth(there / sides)]
            seen, there = (each._replace(corners=each.corners.astype(np.float32)) for each in shares)
            value = ap(seen, there, THRESHOLDS)
            np.testing.assert_array_equal(value[:, 0], np.arange(10) <= 10 - 2 * s)


def test_scores_are_ordered_over_all_images():
    """A wrong box in the second image has the highest score. The order is wrong, right, with one true box."""
    seen = [found(box(0), scores=[0.5]), found(box(0), scores=[0.9])]
    np.testing.assert_allclose(average_precision(seen, [truth(box(0)), truth()], 1, HALF), 0.5)


def test_classes_are_separate_and_one_without_boxes_is_undefined():
    seen = found(box(0), box(0), box(0), scores=[0.9, 0.8, 0.7], labels=[0, 1, 2])
    value = ap(seen, truth(box(0), box(100), labels=[1, 1]), classes=3)
    np.testing.assert_allclose(value, [[np.nan, 51 / 101, np.nan]])


def test_no_predictions_score_zero():
    assert ap(found(scores=[]), truth(box(0))) == 0
    assert ap(found(box(0), scores=[0.5]), truth(box(50))) == 0


def test_boxes_beyond_the_hundred_best_do_not_count():
    wrong = [box(1000)] * MOST
    scores = [*np.linspace(0.9, 0.8, MOST), 0.1]
    assert ap(found(*wrong, box(0), scores=scores), truth(box(0))) == 0
    assert ap(found(*wrong[1:], box(0), scores=scores[1:]), truth(box(0))) == pytest.approx(1 / MOST)


def test_nan_boxes_are_wrong():
    seen = found([np.nan] * 4, box(0), scores=[np.nan, 0.5])
    assert ap(seen, truth(box(0))) == 1
    assert ap(found([np.nan] * 4, scores=[0.9]), truth(box(0))) == 0


def test_average_precision_falls_without_a_correct_box():
    random = np.random.default_rng(0)
    there = truth(*(box(20 * n) for n in range(6)))
    # At distance 3 the IoU is 7/13, so all of the first six boxes are right.
    seen = found(
        *(box(20 * n + random.uniform(-3, 3)) for n in range(6)), *[box(500)] * 4, scores=random.uniform(size=10)
    )
    whole = ap(seen, there)
    for n in range(10):
        rest = ap(Marks(*(np.delete(values, n, axis=0) for values in seen)), there)
        assert rest < whole if n < 6 else rest >= whole


def test_it_equals_the_published_evaluator():
    """AP, and AP at .5 and .75, equal those of pycocotools 2.0.11 for 72 true boxes in 6 images.

    A third of the 108 predicted boxes are duplicates.
    """
    random, seen, there = np.random.Generator(np.random.PCG64(0)), [], []
    for _ in range(6):
        first = random.integers(0, 500, (12, 2))
        boxes = np.concatenate([first, first + random.integers(20, 150, (12, 2))], axis=1)
        labels = random.integers(3, size=12)
        near = np.concatenate([boxes, boxes[:6]]) + random.integers(-8, 9, (18, 4))
        said = np.concatenate([labels, random.integers(3, size=6)])
        there.append(truth(*boxes.astype(float), labels=labels))
        seen.append(found(*near.astype(float), labels=said, scores=random.integers(1000, size=18) / 1000))
    table = average_precision(seen, there, 3)
    np.testing.assert_allclose(table.mean(), 0.4142178252692563, rtol=1e-12)
    np.testing.assert_allclose(table[[0, 5]].mean(axis=1), [0.7185998821456608, 0.36873513964299653], rtol=1e-12)
    np.testing.assert_allclose(
        table.mean(axis=0), [0.42262111551016857, 0.4124044499347444, 0.4076279103628556], rtol=1e-12
    )
