"""An experiment as a plain dataclass: one model on one task with one training configuration. Imports no jax."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from attnlab.documented import Documented
from attnlab.lab.study.values import annotations, check_kind
from attnlab.registry import field_names
from attnlab.tasks.base.task import Task
from attnlab.training.config import RATES, Train

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray, PyTree

    from attnlab.tasks.base.shapes import Classes, Frames, Image, Pairs, Tokens
    from attnlab.tasks.base.task import TaskData


@runtime_checkable
class TaskConfig(Protocol):
    """What an experiment needs of the configuration of a task."""

    def load(self) -> TaskData:
        """Read or generate the data, and return them."""
        ...


@runtime_checkable
class ModelConfig(Protocol):
    """What the lab needs of the configuration of a model."""

    def create(self, key: PRNGKeyArray, shape: Pairs | Tokens | Frames | Image | Classes) -> PyTree:
        """Return the model with new parameters, for data of a shape."""
        ...


@dataclass(frozen=True)
class Experiment(metaclass=Documented):
    """One model on one task with one training configuration.

    All fields are frozen dataclasses, so an experiment is a tree of plain values.

    Raises:
        ValueError: if a field anywhere in the tree holds a value that its annotation does not allow. Also if an
            integer is not below 2³² in size, or a float is not finite in float32, because jax cannot hold these. Also
            if `task` is not a task or `model` is not a model, for example a name or a class. Also if they are swapped.
            The message names the field.
    """

    task: Task
    """The task configuration: the data, the loss and the metrics, for example one of `attnlab.TASKS`."""
    model: Any
    """The model configuration, for example one of `attnlab.MODELS`."""
    train: Train = field(default_factory=Train)
    """The training configuration: steps, batch size, learning rates, seeds and so on."""
    decoder: Any | None = None
    """The search that decodes the test split, one of `attnlab.DECODERS`. None means greedy, as on validation."""

    def __post_init__(self):
        right = isinstance(self.task, TaskConfig) or isinstance(self.model, ModelConfig)
        if isinstance(self.model, TaskConfig) and not right:
            kinds = f"task={type(self.task).__name__}(…), model={type(self.model).__name__}(…)"
            raise ValueError(f"task and model are swapped: {kinds}")
        for name, value, kind in (("task", self.task, TaskConfig), ("model", self.model, ModelConfig)):
            # A class has the methods of its instances, too.
            if isinstance(value, type) or not isinstance(value, kind):
                raise ValueError(f"{name}={value!r} must be a {name}, for example one of attnlab.{name.upper()}S")
        _check(self, ())


def _check(config: Any, above: tuple[str, ...]) -> None:
    """Raise ValueError for the first field below `config` whose value its annotation does not allow."""
    for name in field_names(config):
        value, allowed = getattr(config, name), annotations(type(config)).get(name, object)
        check_kind(".".join((*above, name)), value, allowed)
        _check_range(".".join((*above, name)), value)
        if is_dataclass(value):
            _check(value, (*above, name))


def _check_range(path: str, value: object) -> None:
    """Raise ValueError for numbers that would overflow 32 bits or become infinite in float32, in any config."""
    for entry in value if isinstance(value, tuple) else (value,):
        if isinstance(entry, int) and not -(2**32) < entry < 2**32:
            raise ValueError(f"{path}={value} must be less than 2³² in absolute value")
        if isinstance(entry, float) and not abs(entry) <= RATES[1]:
            raise ValueError(f"{path}={value} must be a number that is finite in float32")
