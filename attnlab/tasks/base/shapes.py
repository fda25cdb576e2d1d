"""The shapes of tasks: what a model must be built for."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.documented import Documented


@dataclass(frozen=True)
class Pairs(metaclass=Documented):
    """The shape of a sequence-to-sequence task: what its model must be built for.

    The lengths cover the padding of every batch of the task.
    """

    source_vocabulary: int
    """The number of ids of the source. Ids are below it."""
    target_vocabulary: int
    """The number of ids of the target. Ids are below it."""
    source_length: int
    """The largest number of tokens of a source, including its marks."""
    target_length: int
    """The largest number of tokens of a target, including its end mark."""
    joint: bool = False
    """Whether an id means the same symbol in source and target."""


@dataclass(frozen=True)
class Tokens(metaclass=Documented):
    """The shape of a task of one token sequence: what its model must be built for."""

    vocabulary: int
    """The number of ids. Ids are below it."""
    length: int
    """The largest number of tokens."""


@dataclass(frozen=True)
class Frames(metaclass=Documented):
    """The shape of a task of one sequence of vectors: what its model must be built for."""

    features: int
    """The number of features of a vector."""
    length: int
    """The largest number of vectors."""


@dataclass(frozen=True)
class Image(metaclass=Documented):
    """The shape of an image: what its model must be built for."""

    height: int
    """The number of rows of pixels."""
    width: int
    """The number of columns of pixels."""
    channels: int
    """The number of channels of a pixel."""


@dataclass(frozen=True)
class Classes(metaclass=Documented):
    """The shape of a classification task: what its model must be built for."""

    source: Tokens | Frames | Image
    """The shape of the input."""
    classes: int
    """The number of classes."""
    each: bool = False
    """Whether every position has its own class. If False, each example has one class."""
