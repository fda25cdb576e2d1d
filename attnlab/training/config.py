"""What a training run is asked to do: steps, batch, optimiser, seeds. Plain data; imports no jax."""

import math
from dataclasses import dataclass
from typing import Literal

Schedule = Literal["constant", "cosine", "inverse_sqrt"]


@dataclass(frozen=True)
class Train:
    """How a model is trained.

    `seeds` counts them (3 means 0, 1, 2) or lists them; `learning_rate` is one rate or several. Every seed
    is trained with every rate, all of them lanes of one program. `learning_rate` is the peak: it is reached
    linearly in `warmup` steps, then follows `schedule` (cosine: to zero at `steps`; inverse_sqrt: falls as
    1/√step). `clip` bounds the global norm of the gradient (0: not at all). `accumulate` gradients are
    averaged before each update. Evaluation and saving happen every so many steps and at the end.

    Raises ValueError, naming the field, for what cannot work.
    """

    steps: int = 1000
    batch_size: int = 64
    learning_rate: float | tuple[float, ...] = 1e-3
    schedule: Schedule = "cosine"
    warmup: int = 100
    weight_decay: float = 0.0
    clip: float = 1.0
    accumulate: int = 1
    seeds: int | tuple[int, ...] = 3
    evaluate_every: int = 250
    save_every: int = 500

    def __post_init__(self):
        for name in ("steps", "batch_size", "accumulate", "evaluate_every", "save_every"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"train.{name}={value} must be at least 1")
        if self.warmup < 0:
            raise ValueError(f"train.warmup={self.warmup} must be 0 or more")
        for name in ("weight_decay", "clip"):
            if not (0 <= (value := getattr(self, name)) < math.inf):
                raise ValueError(f"train.{name}={value} must be a finite number, 0 or more")
        for rate in self.rates:
            if not (0 < rate < math.inf):
                raise ValueError(f"train.learning_rate={rate} must be a finite number above 0")
        if not self.rates or len(set(self.rates)) < len(self.rates):
            raise ValueError(f"train.learning_rate={self.learning_rate} must list different rates, at least one")
        if not self.seed_list or len(set(self.seed_list)) < len(self.seed_list):
            raise ValueError(f"train.seeds={self.seeds} must name different seeds, at least one")
        for seed in self.seed_list:
            # jax.random.key wraps seeds at 2³² without a word.
            if not 0 <= seed < 2**32:
                raise ValueError(f"train.seeds={self.seeds} must lie in 0 … 2³²−1")

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
