import io

import numpy as np
from matplotlib.image import imread

from attnlab.tasks.speech.spectrograms import spectrograms

CLASSES = ("no", "yes", "·")
PIECE = np.array([-1, 0, 0, 1, 1, -1])
LABEL = np.array([2, 0, 0, 1, 1, -1])


def drawn(count: int, word=(0, 1), label=LABEL, classes=CLASSES) -> np.ndarray:
    """Returns the picture of `count` equal strings, each of two words in five frames and one frame of padding."""
    source = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    keep = np.arange(6) < 5
    one = {"source": source, "keep": keep, "label": LABEL, "piece": PIECE}
    batch = {name: np.stack([x] * count) for name, x in one.items()}
    answer = {"label": np.stack([label] * count), "word": np.stack([np.array(word)] * count)}
    png = spectrograms(classes, 0.01, batch, answer)
    return (255 * imread(io.BytesIO(png))[..., :3]).round().astype(int)


def coloured(picture: np.ndarray, colour: str) -> int:
    """Returns the number of pixels that have exactly this colour."""
    wanted = [int(colour[n : n + 2], 16) for n in (1, 3, 5)]
    return int((picture == wanted).all(axis=-1).sum())


def test_wrong_words_and_wrong_frames_are_red():
    right, word, frame = (drawn(1, *wrong) for wrong in ((), ((0, 0),), ((0, 1), np.array([2, 0, 0, 1, 0, -1]))))
    assert coloured(right, "#d55e00") == 0
    assert coloured(right, "#009e73") > 1000
    assert coloured(word, "#d55e00") > 10
    # A wrong frame colours a fifth of the line under the frames.
    assert 0.2 < coloured(frame, "#d55e00") / (coloured(right, "#009e73") - coloured(frame, "#009e73")) < 1.2


def test_dollars_in_a_name_are_dollars():
    assert drawn(1, classes=("$_$", "$5_$10", "·")).shape == drawn(1).shape


def test_a_picture_shows_up_to_eight_without_padding():
    assert drawn(3).shape[0] == 2 * drawn(1).shape[0]
    np.testing.assert_array_equal(drawn(9), drawn(8))
