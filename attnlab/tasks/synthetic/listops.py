"""ListOps: what does a nested list of operators and digits come to?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.synthetic import listops
from attnlab.data.synthetic.listops import END, OPERATORS
from attnlab.data.text.vocabulary import RESERVED, Vocabulary
from attnlab.tasks.base import checks
from attnlab.tasks.base.stream import GeneratedData
from attnlab.tasks.base.task import Batch, Classes, Task, Tokens

SHORTEST = 4  # an operator, two digits, an end


@dataclass(frozen=True)
class ListOps(Task):
    """A nested list of digits, and the digit it comes to: "[MAX 2 9 [MIN 4 7 ] 0 ]" → "9"; scored by accuracy.

    Nangia and Bowman 2018, drawn as the Long Range Arena draws it (Tay et al. 2021): MIN, MAX, MED and SM (the sum
    modulo 10) of 2 … `arguments` arguments, a quarter of them lists, to the `depth`-th level; of `shortest` …
    `longest` words, there `task.shortest=500 task.longest=2000`, here as many as two cores train. All are padded to the
    longest. `honoured` says whether the model is told what is padding; where it is not, it reads that as a symbol.
    Training never repeats; expressions of a few words occur in every part.
    """

    training_only_fields = ("honoured",)

    shortest: int = 16
    longest: int = 128
    depth: int = 10
    arguments: int = 10
    honoured: bool = True
    valid_examples: int = 500
    test_examples: int = 2000
    seed: int = 0

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
        """The expressions are drawn as they are asked for. Raises ValueError where there are none so long."""
        return ListOpsData(self)


class ListOpsData(GeneratedData):
    """Expressions, and the digit each comes to: the problem of `ListOps`."""

    def __init__(self, task: ListOps):
        self._vocabulary = Vocabulary((*"0123456789", *OPERATORS, END))
        shape = Classes(Tokens(len(listops.WORDS), task.longest), 10)
        super().__init__(task, "0123456789", shape, task.longest)

    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """{"source" [N longest] int32, "keep" [N longest], "label" [N] int32}."""
        task = self.task
        try:
            ids, counts, values = listops.draw(random, size, (task.shortest, task.longest), task.depth, task.arguments)
        except ValueError as error:
            raise ValueError(f"task.shortest={task.shortest}, task.longest={task.longest}: {error}") from error
        return {"source": ids, "keep": self._keep(counts), "label": values}

    def encode_prompt(self, text: str) -> Batch:
        """One expression, its words apart. Raises DataError for what is none, or too long."""
        words = text.split()
        ids = np.array(self._vocabulary.encode(words), np.int32) - RESERVED + listops.DIGIT
        try:
            listops.evaluate(words)
        except ValueError as error:
            raise DataError(f"the input {text!r} is no expression: {error}") from error
        if len(words) > self.task.longest:
            raise DataError(f"the input has {len(words)} words, and the model reads up to {self.task.longest}")
        source = np.zeros((1, self.task.longest), np.int32)
        source[0, : len(ids)] = ids
        return {"source": source, "keep": self._keep(np.array([len(ids)])), "label": np.full(1, -1, np.int32)}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The words of row 0, which reads itself."""
        kept = np.asarray(batch["keep"])[0]
        words = [listops.WORDS[n] for n in np.asarray(batch["source"])[0][kept]]
        return {"source": words, "target": words}

    def _keep(self, counts: np.ndarray) -> np.ndarray:
        if not self.task.honoured:
            return np.ones((len(counts), self.task.longest), bool)
        return np.arange(self.task.longest) < counts[:, None]
