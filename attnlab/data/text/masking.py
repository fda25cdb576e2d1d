"""Words hidden from a reader who is to fill them in."""

from dataclasses import dataclass

import numpy as np

from attnlab.data.text.vocabulary import PAD

SEEN, SWAPPED = 0.1, 0.1  # of what is asked for: the share left as it is, and that given another word


@dataclass(frozen=True)
class Masking:
    """Which words are asked for, and what stands in their places (Devlin et al. 2019, section 3.1).

    Of a sentence's words with ids in first … end−1 the share `share` is asked for, at least one, at places drawn
    evenly. At 80% of these stands `mask`, at 10% a word drawn evenly from first … end−1, and 10% stay as they are.

    Raises ValueError for a share not above 0 and up to 1, or no words.
    """

    mask: int
    first: int
    end: int
    share: float = 0.15

    def __post_init__(self):
        if not 0 < self.share <= 1 or not 0 <= self.first < self.end:
            raise ValueError(f"share={self.share} must be above 0 and at most 1, first={self.first} below {self.end}")

    def asks(self, words: np.ndarray | int) -> np.ndarray:
        """How many of so many words are asked for.

        >>> Masking(mask=0, first=1, end=2).asks(np.array([0, 1, 9, 10, 20])).tolist()
        [0, 1, 1, 2, 3]
        """
        words = np.asarray(words)
        return np.minimum(words, np.maximum(1, np.floor(self.share * words + 0.5))).astype(np.int64)

    def hide(self, source: np.ndarray, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Of sentences [N T] {"hidden" [N T], "places", "answers" [N P]}, int32.

        What stands at the places in `hidden` is to be told from `answers`. P is the most there may be in a width of
        T; where a sentence asks for fewer, the last places are 0 and their answers PAD.
        """
        words = (source >= self.first) & (source < self.end)
        # The words in a random order, what is none behind them.
        order = np.argsort(np.where(words, random.random(source.shape), 2.0), axis=1, kind="stable")
        count = int(self.asks(source.shape[1]))
        asked = np.arange(count) < self.asks(words.sum(axis=1))[:, None]
        places = np.where(asked, order[:, :count], 0).astype(np.int32)
        answers = np.where(asked, np.take_along_axis(source, places, axis=1), PAD).astype(np.int32)
        lot, other = random.random(places.shape), random.integers(self.first, self.end, places.shape)
        shown = np.select([lot < SEEN, lot < SEEN + SWAPPED], [answers, other], self.mask)
        hidden = source.astype(np.int32)
        hidden[np.nonzero(asked)[0], places[asked]] = shown[asked]
        return {"hidden": hidden, "places": places, "answers": answers}
