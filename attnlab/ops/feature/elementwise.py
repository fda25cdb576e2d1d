"""Feature maps that act on each component, or on each row, by a formula."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from attnlab.ops.feature.base import Feature, Mapped, relative
from attnlab.ops.precision import accumulation_dtype


def widen(x):
    """The same in float32 at least."""
    return x.astype(accumulation_dtype(x.dtype))


class Same(Feature):
    """A map of as many features as components."""

    def dim(self, K):
        """K."""
        return K


@dataclass(frozen=True)
class Identity(Same):
    """φ(x) = x: linear attention of no feature map.

    Weights may be negative, and their sum may cross zero: near it the normalised answer is arbitrarily large.
    """

    signed = True

    def query(self, x, i):
        """The rows x themselves."""
        return Mapped(widen(x))


@dataclass(frozen=True)
class EluPlusOne(Same):
    """φ(x) = elu(x) + 1: x + 1 above zero, exp(x) below (Katharopoulos et al. 2020, eq. 7).

    Positive, until weights underflow: where those that a query gives sum to less than 2e-31 in float32, as of
    components of −36 in it and in all the keys it sees, it answers zero.
    """

    def query(self, x, i):
        """elu(x) + 1."""
        x = widen(x)
        # exp of the negative part alone: the branch not taken must not overflow, or its gradient is NaN.
        return Mapped(jnp.where(x > 0, x + 1, jnp.exp(jnp.minimum(x, 0))))

    def flops(self, K):
        """A sum, two comparisons, and a choice."""
        return 4 * K


@dataclass(frozen=True)
class Relu(Same):
    """φ(x) = max(x, 0). Weights may all be zero."""

    def query(self, x, i):
        """max(x, 0)."""
        return Mapped(jax.nn.relu(widen(x)))


@dataclass(frozen=True)
class SquaredRelu(Same):
    """φ(x) = max(x, 0)². Weights may all be zero."""

    def query(self, x, i):
        """max(x, 0)²."""
        return Mapped(jax.nn.relu(widen(x)) ** 2)

    def flops(self, K):
        """A comparison and a square."""
        return 2 * K


@dataclass(frozen=True)
class Exp(Same):
    """φ(x) = exp(x), component by component.

    Known up to each row's largest feature, so that no exponent overflows; in float32 a feature below e^−87 of it counts
    as zero, and a query answers zero whose products with keys, so taken, sum to less than 2e-31. Normalised only.
    """

    scaled = True

    def query(self, x, i):
        """exp(x)."""
        return relative(widen(x))

    def flops(self, K):
        """The largest, and the difference from it."""
        return 2 * K


@dataclass(frozen=True)
class SoftmaxFeatures(Same):
    """φ(x) = softmax(x) over the components (Shen et al. 2021, efficient attention, of its queries)."""

    def query(self, x, i):
        """softmax(x)."""
        return Mapped(jax.nn.softmax(widen(x), axis=1))

    def flops(self, K):
        """The largest, the difference from it, the sum, and the quotient."""
        return 4 * K
