"""The fields of a task that describe its parts: files and numbers of examples."""

from __future__ import annotations

from typing import Protocol


class FileFields(Protocol):
    """A task that reads a file for each part."""

    @property
    def train(self) -> str:
        """The training file."""
        ...

    @property
    def valid(self) -> str:
        """The validation file."""
        ...

    @property
    def test(self) -> str:
        """The test file."""
        ...


class EvaluationSizes(Protocol):
    """A task that generates a fixed number of validation and test examples."""

    @property
    def valid_examples(self) -> int:
        """The number of validation examples."""
        ...

    @property
    def test_examples(self) -> int:
        """The number of test examples."""
        ...


class Sizes(EvaluationSizes, Protocol):
    """A task that generates a fixed number of examples of every part."""

    @property
    def train_examples(self) -> int:
        """The number of training examples."""
        ...


def paths(task: FileFields) -> dict[str, str]:
    """Returns the file of each part by name, "" for none."""
    return {"train": task.train, "valid": task.valid, "test": task.test}


def evaluation_sizes(task: EvaluationSizes) -> dict[str, int]:
    """Returns the number of examples of "valid" and "test"."""
    return {"valid": task.valid_examples, "test": task.test_examples}


def sizes(task: Sizes) -> dict[str, int]:
    """Returns the number of examples of each part by name."""
    return {"train": task.train_examples, **evaluation_sizes(task)}
