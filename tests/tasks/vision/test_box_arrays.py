import numpy as np
import pytest

from attnlab.data.images.scenes import Scene
from attnlab.tasks.vision.box_arrays import NONE, box_fingerprint, flipped, padded
from attnlab.tasks.vision.boxes import corners

BOXES = [
    [(0.1, 0.2, 0.4, 0.6), (0.5, 0.0, 1.0, 0.3)],
    [(0.3, 0.3, 0.9, 0.5)],
    [],
    [(0.0, 0.1, 0.2, 0.2), (0.6, 0.6, 0.8, 1.0), (0.25, 0.5, 0.5, 0.75)],
]


@pytest.fixture
def found() -> list[Scene]:
    random = np.random.default_rng(0)
    return [
        Scene(
            image=random.integers(0, 256, (6, 8, 3), np.uint8),
            boxes=np.array(boxes, np.float32).reshape(-1, 4),
            labels=np.arange(len(boxes), dtype=np.int32),
            name=f"{n}.png",
            digest=f"digest {n}",
        )
        for n, boxes in enumerate(BOXES)
    ]


def test_boxes_are_padded_with_no_label(found):
    batch = padded(found, 5)
    assert {name: (x.shape, x.dtype) for name, x in batch.items()} == {
        "image": ((4, 6, 8, 3), np.uint8), "boxes": ((4, 5, 4), np.float32), "label": ((4, 5), np.int32),
    }  # fmt: skip
    np.testing.assert_array_equal((batch["label"] != NONE).sum(axis=1), [2, 1, 0, 3])
    for n, boxes in enumerate(BOXES):
        np.testing.assert_allclose(corners(batch["boxes"][n, : len(boxes)]), np.reshape(boxes, (-1, 4)), atol=1e-6)
        assert not batch["boxes"][n, len(boxes) :].any()


def test_flips_include_boxes(found):
    batch = padded(found, 3)
    across, down = np.array([True, True, False, False]), np.array([True, False, True, True])
    turned = flipped(batch, across, down)
    assert turned["image"].dtype == np.uint8
    assert turned["boxes"].dtype == np.float32
    np.testing.assert_array_equal(turned["image"][0], batch["image"][0][::-1, ::-1])
    np.testing.assert_array_equal(turned["image"][1], batch["image"][1][:, ::-1])
    np.testing.assert_array_equal(turned["image"][3], batch["image"][3][::-1])
    for name, values in flipped(turned, across, down).items():
        np.testing.assert_allclose(values, batch[name], atol=1e-6)
    new = corners(turned["boxes"])
    for n, boxes in enumerate(BOXES):
        for m, (left, top, right, bottom) in enumerate(boxes):
            x0, x1 = (1 - right, 1 - left) if across[n] else (left, right)
            y0, y1 = (1 - bottom, 1 - top) if down[n] else (top, bottom)
            np.testing.assert_allclose(new[n, m], (x0, y0, x1, y1), atol=1e-6)


def test_the_fingerprint_depends_on_files_boxes_labels_and_size(found):
    def digest(scenes, *size):
        return box_fingerprint({"train": scenes, "valid": found[:1], "test": found[1:2]}, *size)

    first = digest(found, 6, 8)
    assert digest(found, 6, 8) == first
    moved = [found[0]._replace(boxes=found[0].boxes + np.float32(0.01)), *found[1:]]
    renamed = [found[0]._replace(labels=found[0].labels[::-1].copy()), *found[1:]]
    other = [found[0]._replace(digest="another"), *found[1:]]
    assert first not in {digest(moved, 6, 8), digest(renamed, 6, 8), digest(other, 6, 8), digest(found, 8, 6)}
