"""Feature maps φ and ψ of linear attention: q and k to the space in which their product is the weight.

A feature is a frozen value; `FEATURES` lists them by name.
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float


class Feature:
    """A map of queries and keys [T K] -> [T M]."""

    def dim(self, K: int) -> int:
        """M for keys of width K."""
        raise NotImplementedError

    def __call__(self, x: Float[Array, "T K"]) -> Float[Array, "T M"]:
        """The features of every row."""
        raise NotImplementedError


@dataclass(frozen=True)
class Identity(Feature):
    """φ(x) = x: linear attention of no feature map. Weights may be negative, and their sum may cross zero."""

    def dim(self, K: int) -> int:
        """Features of a key of width K: K."""
        return K

    def __call__(self, x: Float[Array, "T K"]) -> Float[Array, "T K"]:
        """X itself."""
        return x


@dataclass(frozen=True)
class EluPlusOne(Feature):
    """φ(x) = elu(x) + 1: x + 1 above zero, exp(x) below (Katharopoulos et al. 2020, eq. 7)."""

    def dim(self, K: int) -> int:
        """Features of a key of width K: K."""
        return K

    def __call__(self, x: Float[Array, "T K"]) -> Float[Array, "T K"]:
        """Positive everywhere (until exp underflows, near −87 in float32)."""
        # exp of the negative part alone: the branch not taken must not overflow, or its gradient is NaN.
        return jnp.where(x > 0, x + 1, jnp.exp(jnp.minimum(x, 0)))


FEATURES: dict[str, Feature] = {"elu+1": EluPlusOne(), "identity": Identity()}
