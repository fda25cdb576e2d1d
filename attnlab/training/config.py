"""The configuration of a training run: steps, batch size, optimiser, seeds.

This module holds plain data and does not import jax.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from attnlab.documented import Documented

Schedule = Literal["constant", "cosine", "inverse_sqrt"]
COUNTS = ("steps", "batch_size", "accumulate", "evaluate_every", "save_every", "keep_last")
COUNTS_OR_NONE = ("warmup", "patience", "average", "keep_best", "keep_every")
BETAS = ("beta1", "beta2")
SHARES = ("average_span", "final_rate")
LISTED = ("seeds", "learning_rate")  # fields that may hold a tuple
MANY = 65_536  # the largest number of seeds: each seed is a lane of the compiled program
RATES = (2.0**-126, (2 - 2.0**-23) * 2.0**127)  # the normal range of float32, in which lanes keep their rate


@dataclass(frozen=True)
class Train(metaclass=Documented):
    """How a model is trained. The optimiser is AdamW.

    Every seed is trained with every learning rate. Each (seed, learning rate) pair is a *lane*, and all lanes run in
    one compiled program.

    Adam follows Kingma and Ba 2015. Decoupled weight decay follows Loshchilov and Hutter 2019.

    Raises:
        ValueError: If a value cannot work, or if two values exclude each other. The message names the field.
    """

    steps: int = 1000
    """The number of updates of each lane."""
    batch_size: int = 64
    """The number of examples in each gradient. An update uses `batch_size · accumulate` examples."""
    learning_rate: float | tuple[float, ...] = 1e-3
    """The peak learning rate, or a tuple of different peaks. Each peak is trained with every seed."""
    schedule: Schedule = "cosine"
    """How the learning rate changes after the warm-up.

    "constant" keeps the peak. "cosine" decays to `final_rate` times the peak, which it reaches one step after the last.
    "inverse_sqrt" decays as 1/√step.
    """
    final_rate: float = 0.0
    """The fraction of the peak at which the cosine schedule ends, in 0 … 1. Other schedules require 0."""
    warmup: int = 100
    """The number of steps in which the learning rate rises linearly to its peak. 0 starts at the peak."""
    weight_decay: float = 0.0
    """The coefficient of decoupled weight decay.

    By default the decay skips biases, scales and shifts of norms, embeddings, tables of positions and constants of
    gates.
    """
    decay_all: bool = False
    """Whether weight decay applies to every parameter, including those that it skips by default."""
    beta1: float = 0.9
    """Adam's decay rate of the mean gradient, at least 0 and below 1."""
    beta2: float = 0.999
    """Adam's decay rate of the mean squared gradient, at least 0 and below 1."""
    clip: float = 1.0
    """The largest global norm of a gradient. Larger gradients are scaled down to it. 0 disables clipping."""
    accumulate: int = 1
    """The number of gradients that are averaged before each update.

    Each is that of a mean over its own scored positions. If their numbers differ, for example by padding, the average
    is not exactly the gradient of one large batch.
    """
    seeds: int | tuple[int, ...] = 3
    """The number of seeds (3 means the seeds 0, 1 and 2), or a tuple of the seeds themselves, each in 0 … 2³²−1."""
    evaluate_every: int = 250
    """The number of steps between evaluations on the validation data. The last step is always evaluated."""
    save_every: int = 500
    """The number of steps between checkpoints. The last step is always saved."""
    patience: int = 0
    """The number of consecutive evaluations without a new best after which a lane stops. 0 disables early stopping."""
    restore_best: bool = True
    """Whether the model with the best validation score is the one that is tested and loaded later.

    This applies only with `patience`. Each lane has its own best model. Of equal scores the latest counts. With False,
    the model of the last step is used.
    """
    target: float | None = None
    """The value of the primary metric on the validation data at which a lane stops. None disables this.

    The primary metric of a task is the one that chooses learning rates and that verdicts compare.
    """
    average: int = 0
    """The number of models whose mean is tested and loaded later. 0 disables averaging.

    The models are those of the last step and of every `save_every` steps before it. They lie closer together if they
    would otherwise not fit into `average_span`. Averaging excludes `patience` and `target`.
    """
    average_span: float = 0.1
    """The fraction of the steps, counted from the end, that contains all averaged models, in 0 … 1."""
    keep_last: int = 2
    """The number of newest checkpoints to keep on disk."""
    keep_best: int = 1
    """The number of checkpoints to keep because of their validation score.

    The score of a checkpoint is that of the learning rate that led at that step.
    """
    keep_every: int = 0
    """The interval in steps at which checkpoints are kept permanently. 0 keeps none for this reason."""

    def __post_init__(self):
        self._check_kinds()
        for name in COUNTS:
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"train.{name}={value} must be at least 1")
        for name in COUNTS_OR_NONE:
            if (value := getattr(self, name)) < 0:
                raise ValueError(f"train.{name}={value} must be 0 or more")
        for name in (*COUNTS, *COUNTS_OR_NONE):
            if (value := getattr(self, name)) >= 2**31:
                raise ValueError(f"train.{name}={value} must be at most 2³¹−1: steps are counted in 32 bits")
        if self.target is not None and not abs(self.target) < math.inf:
            raise ValueError(f"train.target={self.target} must be a finite number, or none")
        if self.average and (self.patience or self.target is not None):
            early = f"patience={self.patience}" if self.patience else f"target={self.target}"
            raise ValueError(
                f"train.average={self.average} requires a known last step, which train.{early} "
                "excludes; remove one of them"
            )
        for name in SHARES:
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise ValueError(f"train.{name}={value} must be in 0 … 1")
        if self.final_rate and self.schedule != "cosine":
            raise ValueError(
                f"train.final_rate={self.final_rate} requires train.schedule=cosine, got train.schedule={self.schedule}"
            )
        if self.average > (most := 1 + self.average_steps):
            raise ValueError(
                f"train.average={self.average} must be at most {most}, the number of models within "
                f"train.average_span={self.average_span} of train.steps={self.steps}"
            )
        for name in ("weight_decay", "clip"):
            if not (0 <= (value := getattr(self, name)) <= RATES[1]):
                raise ValueError(f"train.{name}={value} must be a finite float32 number, at least 0")
        for name in BETAS:
            if not 0 <= (value := getattr(self, name)) < 1:
                raise ValueError(f"train.{name}={value} must be at least 0 and below 1")
        for rate in self.rates:
            if not (0 < rate < math.inf):
                raise ValueError(f"train.learning_rate={rate} must be a finite number above 0")
            if not RATES[0] <= rate <= RATES[1]:
                raise ValueError(f"train.learning_rate={rate} must be in 1.2e-38 … 3.4e38, the range of float32")
        if not self.rates or len(set(self.rates)) < len(self.rates):
            raise ValueError(f"train.learning_rate={self.learning_rate} must list at least one rate, each only once")
        if isinstance(self.seeds, int) and not 1 <= self.seeds <= MANY:
            raise ValueError(
                f"train.seeds={self.seeds} must be a number of seeds in 1 … {MANY}, or list them, for example 0,1,2"
            )
        if not self.seed_list or len(set(self.seed_list)) < len(self.seed_list):
            raise ValueError(f"train.seeds={self.seeds} must list at least one seed, each only once")
        for seed in self.seed_list:
            # jax.random.key silently wraps seeds at 2³²: two different seeds would train the same lane.
            if not 0 <= seed < 2**32:
                raise ValueError(f"train.seeds={self.seeds} must be in 0 … 2³²−1")

    def _check_kinds(self) -> None:
        """Checks the type of every value, so that later comparisons cannot fail with a message that names no field."""
        for name in (*COUNTS, *COUNTS_OR_NONE):
            _whole(name, getattr(self, name), getattr(self, name))
        for name in ("weight_decay", "clip", *BETAS, *SHARES):
            _number(name, getattr(self, name), getattr(self, name))
        if self.target is not None:
            _number("target", self.target, self.target)
        for name in ("decay_all", "restore_best"):
            if type(value := getattr(self, name)) is not bool:
                raise ValueError(f"train.{name}={value!r} must be true or false")
        for rate in self.rates:
            _number("learning_rate", self.learning_rate, rate)
        for seed in self.seeds if isinstance(self.seeds, tuple) else (self.seeds,):
            _whole("seeds", self.seeds, seed)
        if self.schedule not in get_args(Schedule):
            raise ValueError(f"train.schedule={self.schedule!r} must be one of {', '.join(get_args(Schedule))}")

    @staticmethod
    def missing_values(written: Mapping[str, object]) -> dict[str, bool | float]:
        """Returns values for fields that an older run folder lacks.

        The default is returned if it does not change what the run did.

        Args:
            written: The fields that the run folder holds.

        Returns:
            The value of each newer field that reproduces the behaviour of the version that wrote the folder.
        """
        return {
            "decay_all": bool(written.get("weight_decay")),
            "restore_best": not written.get("patience"),
            "average_span": 1.0 if written.get("average") else Train.average_span,
        }

    @property
    def average_steps(self) -> int:
        """The number of last steps that contain all averaged models."""
        # The small constant corrects rounding: 0.29 · 100 is 28.999… in floating point and must give 29.
        return math.floor(self.average_span * self.steps + 1e-6)

    @property
    def seed_list(self) -> tuple[int, ...]:
        """The seeds as a tuple."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else tuple(self.seeds)

    @property
    def rates(self) -> tuple[float, ...]:
        """The peak learning rates as a tuple."""
        rate = self.learning_rate
        return tuple(rate) if isinstance(rate, tuple) else (rate,)

    @property
    def lanes(self) -> tuple[tuple[int, float], ...]:
        """All (seed, learning rate) pairs. The learning rate varies fastest."""
        return tuple((seed, rate) for seed in self.seed_list for rate in self.rates)


def _whole(name: str, value: object, entry: object) -> None:
    # `isinstance` would accept True, because bool is a subclass of int.
    if type(entry) is not int:
        one = "a whole number, or a tuple of whole numbers" if name in LISTED else "a whole number"
        raise ValueError(f"train.{name}={value!r} must be {one if entry is value else 'whole numbers'}")


def _number(name: str, value: object, entry: object) -> None:
    if type(entry) not in (int, float):
        one = "a number, or a tuple of numbers" if name in LISTED else "a number"
        raise ValueError(f"train.{name}={value!r} must be {one if entry is value else 'numbers'}")
