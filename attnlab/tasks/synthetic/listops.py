"""ListOps: evaluate a nested list of operators and digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.synthetic import listops
from attnlab.data.synthetic.listops import END, OPERATORS
from attnlab.data.text.vocabulary import RESERVED, Vocabulary
from attnlab.tasks.base import checks
from attnlab.tasks.base.shapes import Classes, Tokens
from attnlab.tasks.base.stream import GeneratedData
from attnlab.tasks.base.task import Task
from attnlab.tasks.base.text_interface import Batch

SHORTEST = 4  # words of the shortest list: an operator, two digits and an end


@dataclass(frozen=True)
class ListOps(Task):
    """A nested list of digits, and its value: "[MAX 2 9 [MIN 4 7 ] 0 ]" → "9". Scored by accuracy.

    The operators are MIN, MAX, MED and SM (the sum modulo 10). A quarter of the arguments are lists. The task is that
    of Nangia and Bowman 2018, generated as in the Long Range Arena (Tay et al. 2021). There the lengths are between
    500 and 2000, `task.shortest=501 task.longest=1999`; the defaults are sizes that two CPU cores can train. Sequences
    are padded to `longest`. No training batch repeats, but expressions of a few words occur in every part.
    """

    training_only_fields = ("honoured",)

    shortest: int = 16
    """The smallest number of words in an expression, at least 4."""
    longest: int = 128
    """The largest number of words in an expression."""
    depth: int = 10
    """The level at which all arguments are digits. Lists are nested `depth` − 1 deep at most."""
    arguments: int = 10
    """The largest number of arguments of an operator. The smallest is 2."""
    honoured: bool = True
    """Whether padding is masked. If False, the model reads padding as an ordinary symbol."""
    valid_examples: int = 500
    """The number of validation examples."""
    test_examples: int = 2000
    """The number of test examples."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""

    def __post_init__(self):
        checks.counts(self, ["shortest", "longest"], least=SHORTEST, most=65_536)
        checks.counts(self, ["depth", "arguments"], least=2, most=64)
        checks.examples(self, ["valid", "test"])
        checks.seed(self)
        if self.shortest > self.longest:
            raise ValueError(f"task.shortest={self.shortest} must be at most task.longest={self.longest}")
        if self.shortest > (most := listops.longest(self.depth, self.arguments)):
            raise ValueError(
                f"task.shortest={self.shortest} must be at most {most}, for task.depth={self.depth} and "
                f"task.arguments={self.arguments}"
            )

    def load(self) -> ListOpsData:
        """Returns the data. Expressions are generated when they are requested.

        Raises:
            ValueError: If no expression of these lengths is found.
        """
        return ListOpsData(self)


class ListOpsData(GeneratedData[ListOps]):
    """The data of `ListOps`: expressions and their values."""

    def __init__(self, task: ListOps):
        self._vocabulary = Vocabulary((*"0123456789", *OPERATORS, END))
        shape = Classes(Tokens(len(listops.WORDS), task.longest), 10)
        super().__init__(task, "0123456789", shape, task.longest)

    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """Returns {"source" [N longest] int32, "keep" [N longest], "label" [N] int32}."""
        task = self.task
        try:
            ids, counts, values = listops.draw(random, size, (task.shortest, task.longest), task.depth, task.arguments)
        except ValueError as error:
            raise ValueError(f"task.shortest={task.shortest}, task.longest={task.longest}: {error}") from error
        return {"source": ids, "keep": self._keep(counts), "label": values}

    def encode_prompt(self, text: str) -> Batch:
        """Parses one expression, with its words separated by spaces.

        Raises:
            DataError: If the text is not an expression, or is too long.
        """
        words = text.split()
        ids = np.array(self._vocabulary.encode(words), np.int32) - RESERVED + listops.DIGIT
        try:
            listops.evaluate(words)
        except ValueError as error:
            raise DataError(f"the input {text!r} is not an expression: {error}") from error
        if len(words) > self.task.longest:
            raise DataError(f"the input has {len(words)} words, but the model reads at most {self.task.longest}")
        source = np.zeros((1, self.task.longest), np.int32)
        source[0, : len(ids)] = ids
        return {"source": source, "keep": self._keep(np.array([len(ids)])), "label": np.full(1, -1, np.int32)}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the words of row 0, for both axes of an attention map."""
        kept = np.asarray(batch["keep"])[0]
        words = [listops.WORDS[n] for n in np.asarray(batch["source"])[0][kept]]
        return {"source": words, "target": words}

    def _keep(self, counts: np.ndarray) -> np.ndarray:
        if not self.task.honoured:
            return np.ones((len(counts), self.task.longest), bool)
        return np.arange(self.task.longest) < counts[:, None]
