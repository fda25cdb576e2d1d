"""Words in a finite group: the product of every prefix. Parity and modular sums are words in cyclic groups."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.data.synthetic import groups
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import TOKEN_ACCURACY
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.synthetic.lengths import SEQUENCE_ACCURACY, LengthData, LengthTask


@dataclass(frozen=True)
class GroupWords(LengthTask):
    """Elements of a finite group, and the product of each prefix: "021 120" → "021 102". Scored by sequence accuracy.

    This is state tracking: the elements of a word act on a state one after another, and the model tags each element
    with the state that it leads to. The elements are independent and uniform. No training batch repeats.

    The primary metric is "sequence_accuracy", the fraction of words whose products are all correct, as in Grazzi et
    al. 2025 and Siems et al. 2025. "token_accuracy" is the fraction of correct products. It flatters a model that
    loses the state: the first products are easy, and half of all guesses about a parity are right. Both are means over
    the tested lengths. "sequence_accuracy.256" is that of length 256. Validation uses the training length.

    Merrill, Petty and Sabharwal 2024 (The Illusion of State in State-Space Models, section 5) compare A5, A4 × Z5 and
    Z60, which have 60 elements each: `task.group=a5`, `a4xz5` and `z60`.
    """

    group: str | tuple[tuple[int, ...], ...] = "a5"
    """The group, by its name or its multiplication table.

    Names are "zN" (integers modulo N), "sN" (permutations of N points), "aN" (even permutations), "dN" (symmetries of
    a polygon), "q8" (quaternions), and products such as "a4xz5". A group has at most 720 elements, and N is at most 6
    for permutations. Row a of a table lists the products of element a with the elements 0 … n−1, as numbers.
    """
    table: str = ""
    """The path of a file with the multiplication table of your own group, instead of `group`.

    It has a line for each element, with numbers separated by spaces or commas.
    """
    moved: int = 0
    """The largest number of points that an element of a word moves, for a group of permutations. 0 means any.

    2 leaves transpositions and the identity, an easier variant, and 3 adds cycles of three points (Grazzi et al. 2025,
    section 5.2). Products are still those of the whole group.
    """

    def __post_init__(self):
        super().__post_init__()
        checks.counts(self, ["moved"], least=0, most=6)
        if self.moved == 1:
            raise ValueError("task.moved=1 leaves the identity alone; use 0, or at least 2")
        if self.table:
            checks.unused(self, "table", ["group", "moved"])
        elif self._built.moved is None and self.moved:
            raise ValueError(f"task.moved={self.moved} requires a group of permutations, for example task.group=s5")

    def load(self) -> GroupWordsData:
        """Returns the data. Words are generated when they are requested.

        Raises:
            DataError: If `table` is not the multiplication table of a group.
        """
        return GroupWordsData(self, groups.read(self.table) if self.table else self._built)

    @property
    def _built(self) -> groups.Group:
        """The group of the field `group`."""
        if isinstance(self.group, str):
            try:
                return groups.named(self.group)
            except ValueError as error:
                raise ValueError(f"task.group={error}") from error
        if not isinstance(self.group, Sequence) or not all(isinstance(row, Sequence) for row in self.group):
            raise ValueError(f"task.group={self.group!r} must be the name of a group, or a table of its products")
        try:
            return groups.from_table(self.group)
        except ValueError as error:
            raise ValueError(f"task.group is not the multiplication table of a group: {error}") from error


@dataclass(frozen=True)
class Parity(GroupWords):
    """Bits, and whether the number of ones so far is odd: "1 0 1 1" → "1 1 0 1". Scored by sequence accuracy."""

    group: str | tuple[tuple[int, ...], ...] = "z2"


@dataclass(frozen=True)
class ModularSum(GroupWords):
    """Digits, and their sums so far modulo 5: "3 4 0 1" → "3 2 2 3". Scored by sequence accuracy.

    `task.group=z7` is the sum modulo 7.
    """

    group: str | tuple[tuple[int, ...], ...] = "z5"


@dataclass(frozen=True)
class S3(GroupWords):
    """Permutations of three points, and the product of each prefix. Scored by sequence accuracy."""

    group: str | tuple[tuple[int, ...], ...] = "s3"


@dataclass(frozen=True)
class S5(GroupWords):
    """Permutations of five points, and the product of each prefix. Scored by sequence accuracy.

    `task.moved=2` has words of transpositions and the identity alone.
    """

    group: str | tuple[tuple[int, ...], ...] = "s5"


class GroupWordsData(LengthData[GroupWords]):
    """The data of `GroupWords`. Every position asks for the product of the elements up to it."""

    metric = SEQUENCE_ACCURACY
    more_metrics = (TOKEN_ACCURACY,)
    accuracy_name = TOKEN_ACCURACY.name

    def __init__(self, task: GroupWords, group: groups.Group):
        self.group = group
        super().__init__(task, group.names)
        if task.table:
            # The fingerprint of the generator covers a few words only and could miss a changed entry of a file.
            self.fingerprint = hashlib.sha256(self.fingerprint.encode() + group.table.tobytes()).hexdigest()

    def draw(self, random: np.random.Generator, size: int, length: int, part: str) -> Batch:
        """Returns {"tokens", "answers": [N T] int32, "scored": [N T]}. All positions are scored."""
        words, products = groups.draw(random, size, length, self.group, self.task.moved)
        return {"tokens": words, "answers": products, "scored": np.ones(words.shape, bool)}
