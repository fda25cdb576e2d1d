"""Scalings of rotary frequencies: they stretch positions, so that a model reads longer sequences than in training.

A scaling is a frozen dataclass. `SCALINGS` lists instances by name. Frequencies f_n are in radians per position, and
2π/f_n is the wavelength of pair n.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.documented import Documented
from attnlab.ops.counts import check_counts, check_positive
from attnlab.registry import Registry


@dataclass(frozen=True)
class RotaryScaling(metaclass=Documented):
    """A change of the frequencies of rotary positions."""

    @property
    def multiplier(self) -> float:
        """Number by which rotated components of queries and keys are multiplied."""
        return 1.0

    @abstractmethod
    def scale(self, frequencies: Float[Array, " half"], base: float) -> Float[Array, " half"]:
        """Returns the scaled frequencies.

        Args:
          frequencies: the frequencies base^{−2n/K} for n = 0 … K/2−1, where K components are rotated.
          base: their base, above 1.
        """


@dataclass(frozen=True)
class LinearScaling(RotaryScaling):
    """Position interpolation: every frequency is divided by the factor (Chen et al. 2023, eq. 4).

    Raises:
      ValueError: if `factor` is below 1.
    """

    factor: float = 4.0
    """How many times longer sequences become."""

    def __post_init__(self):
        _check_factor(self.factor)

    def scale(self, frequencies, base):
        """Returns f / factor."""
        return frequencies / self.factor


@dataclass(frozen=True)
class YarnScaling(RotaryScaling):
    """YaRN: long wavelengths are interpolated, short ones are kept, and scores grow with the factor (Peng et al. 2023).

    Pair n is interpolated by a share that rises from 0 to 1. As in the authors' code, it is linear in n between the
    pairs that turn `beta_fast` and `beta_slow` times within the original length. Both pairs are rounded outwards, to
    whole numbers. In the paper (eq. 18) the share is linear in the number of turns instead.

    Raises:
      ValueError: if `factor` is below 1, if `original_length` is below 1, if `attention_factor` is not above 0, or
        unless 0 < beta_slow < beta_fast.
    """

    factor: float = 4.0
    """How many times longer sequences become."""
    original_length: int = 2048
    """Sequence length in training, before the scaling."""
    beta_fast: float = 32.0
    """Pairs that turn more often than this within the original length are kept."""
    beta_slow: float = 1.0
    """Pairs that turn less often than this within the original length are divided by the factor."""
    attention_factor: float | None = None
    """Number by which rotated queries and rotated keys are multiplied, √(1/t) of the paper's temperature t.

    None: 0.1 ln(factor) + 1 (eq. 22). A mechanism that normalises queries and keys undoes it.
    """

    def __post_init__(self):
        _check_factor(self.factor)
        check_counts(original_length=self.original_length)
        check_positive(attention_factor=self.attention_factor)
        _check_below("beta_slow", self.beta_slow, "beta_fast", self.beta_fast)

    @property
    def multiplier(self):
        """The attention factor."""
        return 0.1 * math.log(self.factor) + 1 if self.attention_factor is None else self.attention_factor

    def scale(self, frequencies, base):
        """Returns f / factor for long wavelengths, f for short ones, and a mean of both in between."""
        half = frequencies.shape[0]

        def pair(turns):  # the pair that turns so often within the original length, as a real number
            return half * math.log(self.original_length / (2 * math.pi * turns)) / math.log(base)

        first = max(math.floor(pair(self.beta_fast)), 0)
        last = min(math.ceil(pair(self.beta_slow)), 2 * half - 1)
        n = jnp.arange(half, dtype=frequencies.dtype)
        share = jnp.clip((n - first) / max(last - first, 1e-3), 0, 1)
        return frequencies * (1 - share) + frequencies / self.factor * share


@dataclass(frozen=True)
class Llama3Scaling(RotaryScaling):
    """Llama 3.1: long wavelengths are interpolated, short ones are kept (Grattafiori et al. 2024, and their code).

    With the original length L, a pair whose wavelength is above L / low_frequency is divided by the factor. One below
    L / high_frequency is kept. In between, both are mixed linearly in the number of turns L / wavelength.

    Raises:
      ValueError: if `factor` is below 1, if `original_length` is below 1, or unless 0 < low_frequency < high_frequency.
    """

    factor: float = 8.0
    """How many times longer sequences become."""
    original_length: int = 8192
    """Sequence length in training, before the scaling."""
    low_frequency: float = 1.0
    """Pairs that turn less often than this within the original length are divided by the factor."""
    high_frequency: float = 4.0
    """Pairs that turn more often than this within the original length are kept."""

    def __post_init__(self):
        _check_factor(self.factor)
        check_counts(original_length=self.original_length)
        _check_below("low_frequency", self.low_frequency, "high_frequency", self.high_frequency)

    def scale(self, frequencies, base):
        """Returns f / factor for long wavelengths, f for short ones, and a mean of both in between."""
        turns = self.original_length / (2 * math.pi) * frequencies
        share = jnp.clip((turns - self.low_frequency) / (self.high_frequency - self.low_frequency), 0, 1)
        return frequencies * share + frequencies / self.factor * (1 - share)


def _check_factor(factor: float) -> None:
    check_positive(factor=factor)
    if factor < 1:
        raise ValueError(f"factor={factor} must be at least 1")


def _check_below(low: str, one: float, high: str, other: float) -> None:
    check_positive(**{low: one, high: other})
    if not one < other:
        raise ValueError(f"{low}={one} must be below {high}={other}")


SCALINGS: dict[str, RotaryScaling] = Registry("SCALINGS")
SCALINGS |= {"linear": LinearScaling(), "yarn": YarnScaling(), "llama3": Llama3Scaling()}
