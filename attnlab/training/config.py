"""What a training run is asked to do: steps, batch, optimiser, seeds. Plain data; imports no jax."""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

Schedule = Literal["constant", "cosine", "inverse_sqrt"]
COUNTS = ("steps", "batch_size", "accumulate", "evaluate_every", "save_every", "keep_last")
COUNTS_OR_NONE = ("warmup", "patience", "average", "keep_best", "keep_every")
BETAS = ("beta1", "beta2")
SHARES = ("average_span", "final_rate")
MANY = 65_536  # seeds that may be counted: each is a lane of the program
RATES = (2.0**-126, (2 - 2.0**-23) * 2.0**127)  # what float32 holds in full: lanes keep their rate in it


@dataclass(frozen=True)
class Train:
    """How a model is trained: the optimiser is AdamW (Kingma and Ba 2015; Loshchilov and Hutter 2019).

    Every seed is trained with every learning rate; each pair is a lane, and all lanes are one program.

    Attributes:
        steps: updates of each lane.
        batch_size: examples of a gradient.
        learning_rate: the peak, or several of them.
        schedule: what the rate does after the warm-up: "constant"; "cosine", to zero one step after the last;
            "inverse_sqrt", as 1/√step.
        final_rate: the share of the peak that the cosine falls to, instead of to zero.
        warmup: steps in which the rate rises linearly to its peak.
        weight_decay: decoupled. It spares biases, scales and shifts of norms, embeddings, tables of positions and
            constants of gates.
        decay_all: whether weight decay reaches those, too.
        beta1: how much of the mean gradient Adam keeps in each step.
        beta2: how much of the mean squared gradient Adam keeps in each step.
        clip: the largest global norm of a gradient; 0 for no bound.
        accumulate: gradients that are averaged before each update.
        seeds: how many (3 means 0, 1, 2), or which.
        evaluate_every: steps between validations; the last step is validated, too.
        save_every: steps between checkpoints; the last step is saved, too.
        patience: a lane stops after so many evaluations in a row without a new best; 0 for never.
        restore_best: where there is patience, the model that is tested, and loaded later, is each lane's best on
            validation, of equals the last; False for the model of the last step.
        target: a lane stops once its headline metric on validation reaches this; None for never.
        average: the model that is tested, and loaded later, is the mean of so many models: the last one, and those
            every `save_every` steps before it, or closer together where they would not lie within `average_span`; 0
            for the last model alone.
        average_span: the last share of the steps, within which all models of the mean lie.
        keep_last: the newest checkpoints that stay on disk.
        keep_best: the checkpoints that stay because they did best on validation, by the rate that was ahead then.
        keep_every: checkpoints of every so many steps stay; 0 for none.

    Raises:
        ValueError: for what cannot work, naming the field.
    """

    steps: int = 1000
    batch_size: int = 64
    learning_rate: float | tuple[float, ...] = 1e-3
    schedule: Schedule = "cosine"
    final_rate: float = 0.0
    warmup: int = 100
    weight_decay: float = 0.0
    decay_all: bool = False
    beta1: float = 0.9
    beta2: float = 0.999
    clip: float = 1.0
    accumulate: int = 1
    seeds: int | tuple[int, ...] = 3
    evaluate_every: int = 250
    save_every: int = 500
    patience: int = 0
    restore_best: bool = True
    target: float | None = None
    average: int = 0
    average_span: float = 0.1
    keep_last: int = 2
    keep_best: int = 1
    keep_every: int = 0

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
            raise ValueError(f"train.average={self.average} needs a last step that is known: leave train.{early} out")
        for name in SHARES:
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise ValueError(f"train.{name}={value} must be in 0 … 1")
        if self.final_rate and self.schedule != "cosine":
            raise ValueError(f"train.final_rate={self.final_rate} is the end of train.schedule=cosine alone")
        if self.average > (most := 1 + self.average_steps):
            raise ValueError(
                f"train.average={self.average} is more than the {most} last models within train.average_span="
                f"{self.average_span} of train.steps={self.steps}"
            )
        for name in ("weight_decay", "clip"):
            if not (0 <= (value := getattr(self, name)) <= RATES[1]):
                raise ValueError(f"train.{name}={value} must be a finite number, 0 or more, that float32 holds")
        for name in BETAS:
            if not 0 <= (value := getattr(self, name)) < 1:
                raise ValueError(f"train.{name}={value} must be at least 0 and below 1")
        for rate in self.rates:
            if not (0 < rate < math.inf):
                raise ValueError(f"train.learning_rate={rate} must be a finite number above 0")
            if not RATES[0] <= rate <= RATES[1]:
                raise ValueError(f"train.learning_rate={rate} must lie in 1.2e-38 … 3.4e38, which float32 holds")
        if not self.rates or len(set(self.rates)) < len(self.rates):
            raise ValueError(f"train.learning_rate={self.learning_rate} must list different rates, at least one")
        if isinstance(self.seeds, int) and not 1 <= self.seeds <= MANY:
            raise ValueError(
                f"train.seeds={self.seeds} must be at least 1 when counting, and at most {MANY}; 0,1,2 lists them"
            )
        if not self.seed_list or len(set(self.seed_list)) < len(self.seed_list):
            raise ValueError(f"train.seeds={self.seeds} must name different seeds, at least one")
        for seed in self.seed_list:
            # jax.random.key wraps seeds at 2³² without a word.
            if not 0 <= seed < 2**32:
                raise ValueError(f"train.seeds={self.seeds} must lie in 0 … 2³²−1")

    def _check_kinds(self) -> None:
        """Refuse values of another kind before they are compared: Python's own words would name no field."""
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
    def missing_values(written: dict[str, Any]) -> dict[str, Any]:
        """What older runs did, by fields that they do not have: where it makes no difference, the default."""
        return {
            "decay_all": bool(written.get("weight_decay")),
            "restore_best": not written.get("patience"),
            "average_span": 1.0 if written.get("average") else Train.average_span,
        }

    @property
    def average_steps(self) -> int:
        """How many of the last steps the models of the mean lie within."""
        # A share of 0.29 of 100 steps is 29, whatever floats make of the product.
        return math.floor(self.average_span * self.steps + 1e-6)

    @property
    def seed_list(self) -> tuple[int, ...]:
        """The seeds, listed."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else tuple(self.seeds)

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates, listed."""
        rate = self.learning_rate
        return tuple(rate) if isinstance(rate, tuple) else (rate,)

    @property
    def lanes(self) -> tuple[tuple[int, float], ...]:
        """Every (seed, learning rate), rates within seeds."""
        return tuple((seed, rate) for seed in self.seed_list for rate in self.rates)


def _whole(name: str, value: Any, entry: Any) -> None:
    # True is an int to Python, and no count.
    if type(entry) is not int:
        raise ValueError(f"train.{name}={value!r} must be {'a whole number' if entry is value else 'whole numbers'}")


def _number(name: str, value: Any, entry: Any) -> None:
    if type(entry) not in (int, float):
        raise ValueError(f"train.{name}={value!r} must be {'a number' if entry is value else 'numbers'}")
