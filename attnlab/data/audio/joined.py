"""Utterances of several words: recordings, as frames, one after another, with the recording of every frame known."""

from collections.abc import Callable, Sequence

import numpy as np

NONE = -1  # the piece of a frame that belongs to no recording: a gap or padding


class Utterances:
    """Joins recordings to utterances, with silence around them.

    There are as many utterances as recordings, and each recording occurs `digits` times. All orders are random, so that
    the first utterances are a fair sample.

    Args:
      random: the generator.
      sounds: N recordings as frames [T bands].
      words: the class of each recording [N].
      digits: number of recordings in an utterance.
      gap: the largest number of frames of a gap. Gaps are drawn uniformly from gap / 2 … gap.

    Attributes:
      pieces: the recordings in each utterance [N digits].
      gaps: the number of silent frames before, between and after them [N digits+1].
    """

    def __init__(
        self, random: np.random.Generator, sounds: Sequence[np.ndarray], words: np.ndarray, digits: int, gap: int
    ):
        count = len(sounds)
        self.sounds, self.words = sounds, words
        self.pieces = np.stack([random.permutation(count) for _ in range(digits)], axis=1)
        self.gaps = random.integers((gap + 1) // 2, gap, size=(count, digits + 1), endpoint=True)

    def lengths(self, speed: float = 0.0) -> np.ndarray:
        """Returns the number of frames of each utterance [N].

        Args:
          speed: if recordings may be played slower by up to this share, the lengths are the largest possible ones.
        """
        frames = np.ceil(np.array([len(sound) for sound in self.sounds]) * (1 + speed)).astype(np.int64)
        return frames[self.pieces].sum(axis=1) + self.gaps.sum(axis=1)

    def spoken(self, rows: np.ndarray) -> np.ndarray:
        """Returns the classes of the words in the utterances `rows` [B digits]."""
        return self.words[self.pieces[rows]]

    def batch(
        self, rows: np.ndarray, width: int, silence: float, vary: Callable[[np.ndarray], np.ndarray] = lambda x: x
    ) -> tuple[np.ndarray, ...]:
        """Returns a batch of utterances.

        Args:
          rows: the indices of the utterances [B].
          width: the number of frames to pad to.
          silence: the value of frames in gaps and padding.
          vary: a function that is applied to every recording, for example an augmentation.

        Returns:
          The frames [B width bands], a boolean array [B width] that is False at padding, the index of the recording
          within its utterance [B width], and its class [B width]. Both are −1 at gaps and padding.
        """
        pieces = [[vary(self.sounds[n]) for n in self.pieces[row]] for row in rows]
        joined = [join_recordings(own, self.gaps[row], width, silence) for own, row in zip(pieces, rows, strict=True)]
        frames, piece, count = (np.stack(each) for each in zip(*joined, strict=True))
        word = np.take_along_axis(self.spoken(rows), np.maximum(piece, 0), axis=1)
        return frames, np.arange(width) < count[:, None], piece, np.where(piece == NONE, NONE, word)


def join_recordings(
    pieces: Sequence[np.ndarray], gaps: Sequence[int] | np.ndarray, width: int, silence: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Joins recordings, with silent frames before, between and after them.

    Args:
      pieces: the recordings as frames [T bands].
      gaps: the number of silent frames before each recording, and after the last one.
      width: the number of frames to pad to.
      silence: the value of frames in gaps and padding.

    Returns:
      The frames [width bands], the index of the recording of each frame [width] (−1: none), and the number of frames
      without padding.

    Raises:
      ValueError: if the utterance has more than `width` frames.
    """
    count = sum(map(len, pieces)) + sum(gaps)
    if count > width:
        raise ValueError(f"a string of {count} frames does not fit in {width=}")
    frames = np.full((width, pieces[0].shape[1]), silence, np.float32)
    owner, at = np.full(width, NONE, np.int32), 0
    for n, piece in enumerate(pieces):
        at += gaps[n]
        frames[at : at + len(piece)], owner[at : at + len(piece)] = piece, n
        at += len(piece)
    return frames, owner, int(count)


def varied(random: np.random.Generator, piece: np.ndarray, speed: float, shift: float) -> np.ndarray:
    """Changes speed and pitch of a recording at random.

    A higher pitch imitates a shorter vocal tract, which is a shift on the mel scale (Jaitly and Hinton 2013). Values
    between frames and between bands are interpolated linearly. Values beyond the outer bands are those of the outer
    bands.

    Args:
      random: the generator.
      piece: the frames [T bands].
      speed: the largest change of speed, as a share.
      shift: the largest shift, in bands.

    Returns:
      Frames of a different length.
    """
    T, bands = piece.shape
    count = max(1, round(T * random.uniform(1 - speed, 1 + speed)))
    return _between(
        _between(piece, np.linspace(0, T - 1, count), 0), np.arange(bands) + random.uniform(-shift, shift), 1
    )


def noisy(frames: np.ndarray, loudness: np.ndarray) -> np.ndarray:
    """Adds white noise to log powers [... bands].

    The powers of sound and noise are added, which is correct in the mean.

    Args:
      frames: the log powers.
      loudness: the root mean square of the noise.
    """
    return np.logaddexp(frames, 2 * np.log(loudness))


def _between(x: np.ndarray, places: np.ndarray, axis: int) -> np.ndarray:
    """Interpolates x linearly at fractional indices along an axis, 0 or 1."""
    places = np.clip(places, 0, x.shape[axis] - 1)
    low = np.minimum(places.astype(np.int64), max(0, x.shape[axis] - 2))
    share = (places - low).astype(np.float32)
    share = share[:, None] if axis == 0 else share
    high = np.minimum(low + 1, x.shape[axis] - 1)
    return x.take(low, axis) * (1 - share) + x.take(high, axis) * share
