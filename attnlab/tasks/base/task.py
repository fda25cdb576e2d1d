"""What a task is, and what a problem must answer. Importing it imports no jax."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

Batch = dict[str, Any]  # arrays by name: numpy's on the host, jax's where it is traced


class Row(NamedTuple):
    """One example of an examination and a model's answer to it, as text.

    `input` is the input, or its name where it is no text. `expected` is the right answer, None where it is not known;
    several right answers have " ||| " between them. `answer` is None where the model answers no text. `figure` is a
    number that belongs to the answer, such as its probability; `TaskData.figure` names it.
    """

    input: str
    expected: str | None
    answer: str | None
    figure: float | None = None


@dataclass(frozen=True)
class Pairs:
    """What a sequence-to-sequence model must be built for: ids below the vocabularies, up to these lengths.

    The target's length counts its end mark. Both cover the padding of every batch a problem gives. `joint` says that
    an id means the same symbol on both sides.
    """

    source_vocabulary: int
    target_vocabulary: int
    source_length: int
    target_length: int
    joint: bool = False


@dataclass(frozen=True)
class Tokens:
    """What a model of one sequence must be built for: ids below the vocabulary, up to this length."""

    vocabulary: int
    length: int


@dataclass(frozen=True)
class Frames:
    """What a model of a sequence of vectors must be built for: so many numbers each, up to this length."""

    features: int
    length: int


@dataclass(frozen=True)
class Image:
    """What a model of images must be built for: so many rows, columns and numbers a pixel."""

    height: int
    width: int
    channels: int


@dataclass(frozen=True)
class Classes:
    """What a model that sorts must be built for: what it reads, and into how many classes.

    `each` says that every position has a class of its own; otherwise the whole example has one.
    """

    source: Tokens | Frames | Image
    classes: int
    each: bool = False


class Task(ABC):
    """A frozen dataclass that says which data, and how much of it. Plain configuration.

    `training_only_fields` names those of its fields that leave the examination as it is: variants of a study that
    differ in others are asked different things, and are not compared. `missing_values` holds, by field, what older run
    folders that lack the field were made with, where that is not its default.
    """

    training_only_fields: ClassVar[tuple[str, ...]] = ()
    missing_values: ClassVar[dict[str, Any]] = {}

    @property
    def unread(self) -> dict[str, Any]:
        """The fields that `load` does not read, given the others, with the values that say so."""
        return {}

    @abstractmethod
    def load(self) -> TaskData:
        """Read or generate the data. Raises DataError where it cannot be had."""

    def with_test(self, problem: Any, file: str) -> TaskData:
        """The loaded `problem` with the examples of a user's file as its test; its `notes` are about that file.

        The file has the format of the task's own files. Where the format allows it, the file may hold inputs without
        answers: then `score` returns {}.

        Raises:
            DataError: naming the file, and the line where there is one, for what the trained model cannot be given.
            NotImplementedError: where the task reads no files.
        """
        raise NotImplementedError(f"task={type(self).__name__} makes its own examples and reads no other files")

    def text_interface(self, vocabulary: dict[str, Any], where: str) -> TextInterface | None:
        """What asks a model that was trained on this task and tells its answers, from the vocabulary of its problem.

        None where nobody can be asked without the data. Raises DataError beginning with `where`, the vocabulary's
        file, where it is none of such a problem.
        """
        return None


class TextInterface(ABC):
    """What a trained model is asked with, and its answers told: what needs none of the data it was trained on.

    `shape` (`Pairs`, `Tokens`, …) is all that a model is built from; `decodes` says whether answers are decoded symbol
    by symbol, `continues` whether what a person gives is gone on with so (both have `answers`), and `decoder` how,
    where nobody says (None: greedily).
    """

    shape: Any
    decodes: bool = False
    continues: bool = False
    decoder: Any = None

    @property
    @abstractmethod
    def vocabulary(self) -> dict[str, Any]:
        """What ids mean, and whatever else `Task.text_interface` reads, as JSON: what `vocabulary.json` holds."""

    @abstractmethod
    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """The mean loss of a batch and other scalars by name. Traceable; key None: no dropout."""

    @abstractmethod
    def answer(self, model: Any, batch: Batch) -> Batch:
        """What the model answers to an examination's batch. Traceable.

        Where answers are decoded symbol by symbol it takes a `decoder` besides; None is the greedy one.
        """

    @abstractmethod
    def encode_prompt(self, text: str) -> Batch:
        """One input as a batch of one. Raises DataError naming what was never seen, and where."""

    @abstractmethod
    def format_answer(self, answer: Batch) -> str:
        """An answer of one as text."""

    @abstractmethod
    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The symbols of row 0, "source" and "target", for the axes of an attention map."""


class TaskData(TextInterface):
    """Data in batches, what a model is to learn from them, and how well it did.

    `fingerprint` is the sha256 (hex) of the data; `metric` the headline among those of `score`, and `higher` whether
    more of it is better; `notes` what a person should know of how the data were read, and `pretraining_steps` how many
    of the first steps of training are of another kind than what is scored. `figure` names the number in each of `rows`.
    """

    fingerprint: str
    metric: str
    higher: bool
    notes: tuple[str, ...] = ()
    pretraining_steps: int = 0
    figure: str = ""

    @property
    def first_steps(self) -> tuple[int, ...]:
        """Steps whose batches have, together, every shape that a training batch can have. One where all are alike."""
        return (0,)

    @abstractmethod
    def batch(self, seed: int, step: int, size: int) -> Batch:
        """A training batch [size …]: a function of the arguments, its shapes of step and size alone.

        Each example comes once an epoch.
        """

    @abstractmethod
    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Examples of "valid" or "test" in batches of one shape, the last one padded: all, or `limit` of them.

        These are always the same ones, and no worse a sample where a file is sorted (`attnlab.tasks.base.sampled`).
        """

    @abstractmethod
    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """The metrics by name, rates in 0 … 1; answers in the order of `eval_batches(part, limit)`."""

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """The examples of a part with a model's answers, as text; both in the order of `eval_batches(part, limit)`.

        Empty where an example and its answer cannot be written on a line, as a generated image.
        """
        return []

    def counted(self, part: str, limit: int | None = None) -> int | None:
        """Of how many the headline metric of `score` is the share that is right; None where it is no such share."""
        return None

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """What was answered to an examination's batch, as PNG by caption; of a batch that is shorter, of fewer rows."""
        return {}
