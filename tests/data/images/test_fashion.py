import numpy as np

from attnlab.data.images import fashion


def test_fashion_mnist(published):
    published("fashion_mnist")
    parts = fashion.parts()
    assert {part: len(labels) for part, (_, labels) in parts.items()} == {"train": 60_000, "test": 10_000}
    for part, (pixels, labels) in parts.items():
        assert pixels.shape[1:] == (28, 28, 1)
        assert np.bincount(labels).tolist() == [len(labels) // 10] * 10, part
    assert len(fashion.CLASSES) == 10
