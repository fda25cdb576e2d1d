"""Experiments and studies: what is asked. Plain data; imports no jax."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from attnlab.training.config import Train


@dataclass(frozen=True)
class Experiment:
    """One model on one task, trained one way."""

    task: Any
    model: Any
    train: Train = Train()


@dataclass(frozen=True)
class Variation:
    """Named variants, each a set of fields with the value it gives them."""

    variants: dict[str, dict[str, Any]]


def over(path: str, **values: Any) -> Variation:
    """One field, several named values: `over("model.mechanism", softmax=Softmax(), linear=Linear())`."""
    return Variation({name: {path: value} for name, value in values.items()})


@dataclass(frozen=True)
class Study:
    """A base experiment, what varies in it, and the question it answers.

    `quick` holds the fields that `--quick` changes, so that a glimpse ends within a minute.
    `name` is the experiment's folder; a file that gives none lends its own.
    Raises ValueError where a variant names a field that does not exist.
    """

    base: Experiment
    vary: Variation | None = None
    question: str = ""
    quick: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self):
        self.variants()

    def variants(self) -> dict[str, Experiment]:
        """Each variant's experiment, by name, in order."""
        if self.vary is None:
            return {"base": self.base}
        return {name: change(self.base, **changes) for name, changes in self.vary.variants.items()}


def change(config: Any, /, **changes: Any) -> Any:
    """A copy of a tree of dataclasses with `a.b=value` replaced at each dotted path.

    Raises ValueError naming the path where a field does not exist.
    """
    for path, value in changes.items():
        config = _set(config, path.split("."), value, path)
    return config


def _set(config: Any, names: list[str], value: Any, path: str) -> Any:
    name, *rest = names
    if not is_dataclass(config) or name not in {f.name for f in fields(config)}:
        raise ValueError(f"{path}: {type(config).__name__} has no field {name!r}")
    return replace(config, **{name: _set(getattr(config, name), rest, value, path) if rest else value})
