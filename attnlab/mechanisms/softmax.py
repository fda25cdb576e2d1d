"""Softmax attention."""

from dataclasses import dataclass
from typing import final

from attnlab.mechanisms.pattern_softmax import PatternSoftmax
from attnlab.ops.mask import Full


@final
@dataclass(frozen=True)
class Softmax(PatternSoftmax):
    """Softmax attention over the keys that the mask allows.

    y = softmax(score(q, k) + bias) v

    The decoding state is a cache of keys and values.

    Raises:
        ValueError: if `block` or `length` is below 1, if `softcap` is not above 0, if `score` is not callable, or if a
            key is known to lie beyond `length` of a score that learns something per position.

    Source: Vaswani et al. 2017, eq. 1.
    """

    @property
    def line(self) -> str:
        """One-line description for lists of mechanisms."""
        blocks = "" if self.block is None else f", in blocks of {self.block} keys"
        sink = {"none": "", "zero": ", with a sink of score zero", "learned": ", with a learned sink"}[self.sink]
        return f"{(self.__doc__ or '').splitlines()[0].rstrip('.')}{blocks}{sink}."

    @property
    def pattern(self):
        """All pairs."""
        return Full()
