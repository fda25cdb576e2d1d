import numpy as np

from attnlab.data.synthetic import discs


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def test_boxes_are_exact_and_inside(monkeypatch):
    """Draws a single figure without noise. The pixel centres that it covers lie in its box and come near each edge."""
    monkeypatch.setattr(discs, "NOISE", 0)
    found = discs.draw(generator(), 60, (60, 90), 1).scenes
    for scene in found:
        left, top, right, bottom = scene.boxes[0] * np.tile([90, 60], 2)
        far = abs(scene.image.astype(float) - scene.image[0, 0]).sum(axis=2)
        figure = far > 0.51 * far.max()
        down, across = (np.flatnonzero(figure.any(axis=axis)) + 0.5 for axis in (1, 0))
        for ends, (first, last) in ((across, (left, right)), (down, (top, bottom))):
            assert first <= ends[0] < first + 2
            assert last - 2 < ends[-1] <= last
        assert scene.boxes.min() >= 0
        assert scene.boxes.max() <= 1
    assert {int(scene.labels[0]) for scene in found} == {0, 1, 2}


def test_figures_are_as_many_as_requested_apart_and_a_function_of_the_seed():
    found = discs.draw(generator(), 40, (48, 64), 5).scenes
    counts = [len(scene.boxes) for scene in found]
    assert min(counts) == 1
    assert max(counts) == 5
    assert all(len(scene.labels) == len(scene.boxes) for scene in found)
    again = discs.draw(generator(), 40, (48, 64), 5).scenes
    assert [scene.digest for scene in again] == [scene.digest for scene in found]
    assert len({scene.digest for scene in found}) == 40
    assert discs.draw(generator(1), 1, (48, 64), 5).scenes[0].digest != found[0].digest


def test_fewer_figures_are_drawn_without_room():
    assert len(discs.draw(generator(), 1, (16, 16), 64).scenes[0].boxes) < 64
