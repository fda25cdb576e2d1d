"""The sizes of a model that a match solves for: width and feed-forward width."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, islice
from typing import Protocol, runtime_checkable

from attnlab.lab.study.experiment import ModelConfig
from attnlab.registry import field_names

ATTEMPTS = 64  # multiples around a width that are tried until the model allows one


@runtime_checkable
class FeedForwardModel(Protocol):
    """The configuration of a model with feed-forward blocks."""

    @property
    def feedforward_width(self) -> int:
        """Width of the hidden layer of the feed-forward blocks."""
        ...


def growth_exponent(wider: float, costlier: float) -> float:
    """Return the exponent of the cost in the width, clipped to [0.25, 8] so that the next guess stays reasonable."""
    return min(8.0, max(0.25, math.log(costlier) / math.log(wider)))


def multiples_around(guess: float, unit: int) -> Iterator[int]:
    """Yield the positive multiples of a unit, in order of distance from a guess."""
    middle = max(1, round(guess / unit))
    side = 1 if guess > unit * middle else -1
    steps = chain([0], *((side * n, -side * n) for n in range(1, ATTEMPTS)))
    return islice((unit * (middle + n) for n in steps if middle + n > 0), ATTEMPTS)


def sizes(model: ModelConfig) -> list[str]:
    """Return the fields of a model that a match solves for."""
    return [field for field in ("width", "feedforward") if field in field_names(model)]


def size(model: ModelConfig, field: str) -> int | None:
    """Return a size of a model, or None if the model has no such field."""
    return getattr(model, field) if field in field_names(model) else None


def unit(model: ModelConfig) -> int:
    """Return the number of heads, of which a width must be a multiple, or 1."""
    heads = size(model, "heads")
    return heads if isinstance(heads, int) else 1


def inner_width(model: ModelConfig) -> int:
    """Return the feed-forward width. None in the field stands for a multiple of the width."""
    return model.feedforward_width if isinstance(model, FeedForwardModel) else size(model, "feedforward") or 0
