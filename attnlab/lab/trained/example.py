"""One example for inspecting a trained model: teacher-forced inputs, and the symbols along the axes of the maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, PyTree

from attnlab.analysis.maps import attention_maps
from attnlab.lab.trained.decoding import Answerer, DivergedError
from attnlab.lab.trained.load import Trained
from attnlab.mechanisms import Mechanism
from attnlab.tasks.base.example import Axis, ImageAxis, places
from attnlab.tasks.base.text_interface import is_decoded

CLASS = "[class]"  # the class token in front of all symbols, whose output classifies the sequence


@runtime_checkable
class AttentionConfig(Protocol):
    """A configuration of a model with attention. A user-defined model need not have it."""

    @property
    def attentions(self) -> Mapping[str, Mechanism]:
        """The mechanism of each attention by name."""
        ...


@runtime_checkable
class GridConfig(Protocol):
    """A configuration of a model that reads an image as a grid of positions."""

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return the numbers of rows and columns of positions in an image of this size."""
        ...


@runtime_checkable
class ClassTokenModel(Protocol):
    """A model that may put a class token in front of its input."""

    token: Array | None


@dataclass(frozen=True)
class TeacherForcedExample:
    """One example: the inputs of a model, the answer it is forced to, and the symbols along the axes of the maps."""

    answer: str
    """The answer of the model, as text."""
    inputs: tuple[np.ndarray | Array, ...]
    """The model's inputs, without a batch axis."""
    axes: dict[str, tuple[list[str], list[str]]]
    """The symbols (rows, columns) by the name of the attention, see `attnlab.tasks.base.example.ModelExample`."""


def attentions(config: object) -> Mapping[str, Mechanism]:
    """Return the mechanism of each attention of a model by name, an empty dict if it has none."""
    return config.attentions if isinstance(config, AttentionConfig) else {}


def check(run: str | Path, found: Trained) -> None:
    """Check that the model of a run has attention maps.

    Raises:
        ValueError: It has none. The message names the run.
    """
    config, maps = found.experiment.model, found.problem.maps
    if maps is None or maps.kind == "graph":
        kinds = "models of sequences, classification, detection and image generation"
        page = "" if maps is None else "; its report shows the attention between nodes"
        raise ValueError(f"{run}: {type(config).__name__} has no attention maps; only {kinds} have them{page}")
    if not attentions(config):
        raise ValueError(f"{run}: the model has no attention, so there are no maps to show")


def forced(found: Trained, text: str) -> TeacherForcedExample:
    """Return `text` and the model's own answer to it as one teacher-forced example.

    The answer is decoded as it was for the test.

    Raises:
        DataError: The text has symbols that were not seen in training.
        DivergedError: The model returns NaN.
    """
    problem, batch = found.problem, found.problem.encode_prompt(text)
    if is_decoded(problem):
        best = Answerer(found)(batch["source"], np.ones(1))[0][0]
        if np.isnan(best.score):
            raise DivergedError("the model returned non-finite values for this input")
        answer = {"tokens": best.tokens[None]}
    else:
        answer = jax.jit(problem.answer)(found.model, batch)
    example = problem.example(batch, answer)
    axes = {name: symbols(found.experiment.model, found.model, each) for name, each in example.axes.items()}
    return TeacherForcedExample(problem.answer_line(answer), example.inputs, axes)


def symbols(config: object, model: PyTree, axes: tuple[Axis, Axis]) -> tuple[list[str], list[str]]:
    """Return the symbols along the rows and the columns of a map, those that the model adds included.

    Args:
        config: The model's configuration.
        model: The model.
        axes: What the task says of the axes.
    """
    rows, columns = (_named(config, model, axis) for axis in axes)
    return rows, columns


def _named(config: object, model: PyTree, axis: Axis) -> list[str]:
    if not isinstance(axis, ImageAxis):
        return [*leading_symbols(model), *axis]
    if not isinstance(config, GridConfig):
        raise ValueError(f"{type(config).__name__} has no method grid, which names the positions of an image")
    rows, columns = config.grid(axis.height, axis.width)
    return places(columns, rows)


def observed(
    model: PyTree, example: TeacherForcedExample, observer: Callable[..., Mapping[str, Array | None]] = attention_maps
) -> dict[str, np.ndarray]:
    """Compute the maps of a model on an example, without padding, or what another observer returns.

    Args:
        model: The model.
        example: The inputs, and the symbols along the axes of the maps, whose numbers are the sizes without padding.
        observer: Called as `observer(model, *inputs)`. Returns arrays `[L H T S]` by name, or None for a name without
            one. Default: `attention_maps`.

    Returns:
        The arrays `[L H T S]` in float64, by the names in `example.axes`. Names without an array are left out.
    """
    maps = observer(model, *example.inputs)
    trimmed = {}
    # In the order in which the model computes them.
    for name, (rows, columns) in example.axes.items():
        if maps.get(name) is not None:
            trimmed[name] = np.asarray(maps[name], np.float64)[:, :, : len(rows), : len(columns)]
    return trimmed


def leading_symbols(model: PyTree) -> list[str]:
    """Return the symbols that a model puts in front of its input: the class token, if it has one."""
    return [CLASS] if isinstance(model, ClassTokenModel) and model.token is not None else []


def axis(symbols: list[str], count: int, model: PyTree) -> list[str]:
    """Return the symbols along an axis of `count` positions, or numbers if the model reads, for example, patches.

    Args:
        symbols: The symbols, those that the model adds included.
        count: The number of positions along the axis.
        model: The model, which may put a class token in front of its input.

    Returns:
        The symbols if there are `count` of them, otherwise the class token, if any, and numbers from 1.
    """
    if len(symbols) == count:
        return symbols
    own = leading_symbols(model)
    return [*own, *(str(n) for n in range(1, count - len(own) + 1))]
