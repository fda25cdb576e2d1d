"""Masked language modelling: words are hidden and must be predicted."""

from dataclasses import dataclass

import numpy as np

from attnlab.data.text.vocabulary import PAD

SEEN, SWAPPED = 0.1, 0.1  # of the selected words, the share that is left unchanged, and that is replaced at random


@dataclass(frozen=True)
class Masking:
    """Selects the words to predict, and replaces them (Devlin et al. 2019, section 3.1).

    Of the words of a sentence, which have ids in first … end−1, a share is selected uniformly at random, at least one.
    80% of the selected words are replaced by the mask and 10% by a uniformly random word. 10% stay unchanged.

    Raises:
      ValueError: if the share is not above 0 and at most 1, or there are no words.
    """

    mask: int
    """The id of the mask."""
    first: int
    """The first id that is a word."""
    end: int
    """The id after the last one that is a word."""
    share: float = 0.15
    """The share of words to predict."""

    def __post_init__(self):
        if not 0 < self.share <= 1 or not 0 <= self.first < self.end:
            first = f"first={self.first} must be at least 0 and below end={self.end}"
            raise ValueError(f"share={self.share} must be above 0 and at most 1, and {first}")

    def asks(self, words: np.ndarray | int) -> np.ndarray:
        """Returns how many words are selected of a number of words. Works elementwise on arrays.

        >>> Masking(mask=0, first=1, end=2).asks(np.array([0, 1, 9, 10, 20])).tolist()
        [0, 1, 1, 2, 3]
        """
        words = np.asarray(words)
        return np.minimum(words, np.maximum(1, np.floor(self.share * words + 0.5))).astype(np.int64)

    def hide(self, source: np.ndarray, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Selects and replaces words in a batch.

        Args:
          source: the ids of N sentences [N T].
          random: the generator.

        Returns:
          A dict of int32 arrays: "hidden" [N T], the ids after replacement; "places" [N P], the positions of the
          selected words; "answers" [N P], the original ids at these positions. P is the largest possible number for T
          positions. If a sentence has fewer selected words, its last places are 0 and their answers are PAD.
        """
        words = (source >= self.first) & (source < self.end)
        # Sort positions so that the words come first, in a random order. Positions without a word come last.
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
