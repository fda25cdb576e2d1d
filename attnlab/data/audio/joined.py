"""Recordings, as frames, joined to strings: which recording every frame of a string belongs to is known."""

from collections.abc import Callable, Sequence

import numpy as np

NONE = -1  # the piece of a frame that belongs to none: of a gap, or of padding


class Strings:
    """Recordings joined: `pieces` [N digits] says which stand in each string, `gaps` [N digits+1] how many frames of
    silence around them. As many strings as recordings, each of which occurs `digits` times.

    `sounds` are the recordings as frames [T bands], `words` [N] the class of each. All orders are drawn, so that the
    first strings are a fair sample; gaps hold gap / 2 … `gap` frames, drawn evenly.
    """

    def __init__(
        self, random: np.random.Generator, sounds: Sequence[np.ndarray], words: np.ndarray, digits: int, gap: int
    ):
        count = len(sounds)
        self.sounds, self.words = sounds, words
        self.pieces = np.stack([random.permutation(count) for _ in range(digits)], axis=1)
        self.gaps = random.integers((gap + 1) // 2, gap, size=(count, digits + 1), endpoint=True)

    def lengths(self, speed: float = 0.0) -> np.ndarray:
        """Frames of each string [N]; at most, where recordings are played up to a share `speed` slower."""
        frames = np.ceil(np.array([len(sound) for sound in self.sounds]) * (1 + speed)).astype(np.int64)
        return frames[self.pieces].sum(axis=1) + self.gaps.sum(axis=1)

    def spoken(self, rows: np.ndarray) -> np.ndarray:
        """The classes of the words of those strings [B digits]."""
        return self.words[self.pieces[rows]]

    def batch(
        self, rows: np.ndarray, width: int, silence: float, vary: Callable[[np.ndarray], np.ndarray] = lambda x: x
    ) -> tuple[np.ndarray, ...]:
        """Those strings: frames [B width bands], which of them are no padding, and the piece and the class of each.

        Every recording is put through `vary`; the class, as the piece, is −1 where there is no word.
        """
        pieces = [[vary(self.sounds[n]) for n in self.pieces[row]] for row in rows]
        joined = [join_recordings(own, self.gaps[row], width, silence) for own, row in zip(pieces, rows, strict=True)]
        frames, piece, count = (np.stack(each) for each in zip(*joined, strict=True))
        word = np.take_along_axis(self.spoken(rows), np.maximum(piece, 0), axis=1)
        return frames, np.arange(width) < count[:, None], piece, np.where(piece == NONE, NONE, word)


def join_recordings(
    pieces: Sequence[np.ndarray], gaps: Sequence[int] | np.ndarray, width: int, silence: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Recordings [T bands] one after another, with frames of silence before, between and behind them.

    Answers frames [width bands], silence behind the last too, the piece that each belongs to [width] (−1: none), and
    how many of them the string has. Raises ValueError where it has more than `width`.
    """
    count = sum(map(len, pieces)) + sum(gaps)
    if count > width:
        raise ValueError(f"a string of {count} frames does not fit {width=}")
    frames = np.full((width, pieces[0].shape[1]), silence, np.float32)
    owner, at = np.full(width, NONE, np.int32), 0
    for n, piece in enumerate(pieces):
        at += gaps[n]
        frames[at : at + len(piece)], owner[at : at + len(piece)] = piece, n
        at += len(piece)
    return frames, owner, int(count)


def varied(random: np.random.Generator, piece: np.ndarray, speed: float, shift: float) -> np.ndarray:
    """Frames [T bands] as if spoken up to a share `speed` faster or slower, and up to `shift` bands higher or lower.

    Higher is by a shorter throat (Jaitly and Hinton 2013, on the mel scale a shift). Between frames and between bands
    all is taken to be straight, beyond the outer ones as they are.
    """
    T, bands = piece.shape
    count = max(1, round(T * random.uniform(1 - speed, 1 + speed)))
    return _between(
        _between(piece, np.linspace(0, T - 1, count), 0), np.arange(bands) + random.uniform(-shift, shift), 1
    )


def noisy(frames: np.ndarray, loudness: np.ndarray) -> np.ndarray:
    """Log powers [... bands] with white noise of that loudness (a root mean square) beside the sound.

    Their powers are added, which is what sound and noise have together in the mean.
    """
    return np.logaddexp(frames, 2 * np.log(loudness))


def _between(x: np.ndarray, places: np.ndarray, axis: int) -> np.ndarray:
    """X at places between its rows or columns."""
    places = np.clip(places, 0, x.shape[axis] - 1)
    low = np.minimum(places.astype(np.int64), max(0, x.shape[axis] - 2))
    share = (places - low).astype(np.float32)
    share = share[:, None] if axis == 0 else share
    high = np.minimum(low + 1, x.shape[axis] - 1)
    return x.take(low, axis) * (1 - share) + x.take(high, axis) * share
