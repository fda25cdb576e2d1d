import numpy as np

from attnlab.data.synthetic.figures import CLASSES, figures, outside


def drawn(count=200, seed=0, noise=0.0):
    return figures(np.random.default_rng(seed), count, 16, noise)


def test_they_are_a_function_of_the_seed_and_as_many_of_each_kind():
    a, b, c = drawn(), drawn(), drawn(seed=1)
    np.testing.assert_array_equal(a.images, b.images)
    assert (a.images != c.images).any()
    assert a.images.shape == (200, 16, 16, 1)
    assert np.bincount(a.labels).tolist() == [20] * len(CLASSES)
    assert np.ptp(np.bincount(drawn(203).labels)) == 1


def test_they_lie_within_the_image():
    pixels = drawn().images[..., 0]
    assert not pixels[:, [0, -1]].max() > 128
    assert (pixels.max(axis=(1, 2)) > 110).all()
    # Figures are bright or dim, and large or small.
    assert np.ptp(pixels.max(axis=(1, 2))) > 90
    assert np.ptp((pixels > 60).sum(axis=(1, 2))) > 40


def test_noise_has_the_given_size():
    assert drawn(noise=0.0).images[:, 0, 0].max() == 0
    corner = figures(np.random.default_rng(0), 4000, 16, 0.1).images[:, 0, 0, 0] / 255
    # The negative half of the noise is clipped to zero, so its mean is 0.1/√(2π).
    assert abs(corner.mean() - 0.1 / np.sqrt(2 * np.pi)) < 0.005


def test_where_each_figure_is():
    inside = lambda kind, x, y: bool(outside(kind, np.float64(x), np.float64(y)) < 0)
    middle = {kind: inside(kind, 0, 0) for kind in CLASSES}
    assert [kind for kind in CLASSES if not middle[kind]] == ["ring", "frame"]
    assert inside("square", 0.8, 0.8)
    assert not inside("disc", 0.8, 0.8)
    assert inside("frame", 0.8, 0.8)
    assert inside("ring", 0, 0.9)
    assert inside("diamond", 0, 0.9)
    assert not inside("diamond", 0.6, 0.6)
    assert inside("bar", 0.9, 0)
    assert not inside("bar", 0, 0.9)
    assert inside("pole", 0, 0.9)
    assert not inside("pole", 0.9, 0)
    assert inside("plus", 0, 0.9)
    assert inside("plus", 0.9, 0)
    assert not inside("plus", 0.6, 0.6)
    assert inside("cross", 0.6, 0.6)
    assert inside("cross", -0.6, 0.6)
    assert not inside("cross", 0, 0.9)
    # One corner points up, because y grows downwards.
    assert inside("triangle", 0, -0.9)
    assert not inside("triangle", 0.5, -0.5)
    assert not inside("triangle", 0, 0.6)
    assert inside("triangle", 0.7, 0.4)
