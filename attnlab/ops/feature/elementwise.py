"""Feature maps that apply a formula to each component or to each row."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from attnlab.ops.feature.base import Feature, FeatureRows, relative
from attnlab.ops.precision import accumulation_dtype


def widen(x):
    """Casts to float32 at least."""
    return x.astype(accumulation_dtype(x.dtype))


class SameWidthFeature(Feature):
    """A map with as many features as components: M = K."""

    def dim(self, K):
        """Returns K."""
        return K


@dataclass(frozen=True)
class Identity(SameWidthFeature):
    """φ(x) = x: linear attention without a feature map.

    Weights may be negative, and their sum may be close to zero. The normalised output is then arbitrarily large.
    """

    signed = True

    def query(self, x, i):
        """Returns x."""
        return FeatureRows(widen(x))


@dataclass(frozen=True)
class EluPlusOne(SameWidthFeature):
    """φ(x) = elu(x) + 1: x + 1 above zero, exp(x) below (Katharopoulos et al. 2020, eq. 7).

    Positive, unless weights underflow. If the weights of a query sum to less than 2e-31 in float32, its output is zero.
    This happens, for example, if all components of the query and of the keys it sees are −36.
    """

    def query(self, x, i):
        """Returns elu(x) + 1."""
        x = widen(x)
        # Take exp of the negative part only. If the branch not taken overflowed, its gradient would be NaN.
        return FeatureRows(jnp.where(x > 0, x + 1, jnp.exp(jnp.minimum(x, 0))))

    def flops(self, K):
        """A sum, two comparisons and a selection per component."""
        return 4 * K


@dataclass(frozen=True)
class Relu(SameWidthFeature):
    """φ(x) = max(x, 0). Weights may all be zero."""

    def query(self, x, i):
        """Returns max(x, 0)."""
        return FeatureRows(jax.nn.relu(widen(x)))


@dataclass(frozen=True)
class SquaredRelu(SameWidthFeature):
    """φ(x) = max(x, 0)². Weights may all be zero."""

    def query(self, x, i):
        """Returns max(x, 0)²."""
        return FeatureRows(jax.nn.relu(widen(x)) ** 2)

    def flops(self, K):
        """A comparison and a square per component."""
        return 2 * K


@dataclass(frozen=True)
class Exp(SameWidthFeature):
    """φ(x) = exp(x), component by component.

    Features are relative to the largest of their row, so that no exponent overflows. In float32 a feature below e^−87
    times the largest is zero. If the products of a query with its keys, so computed, sum to less than 2e-31, its output
    is zero. The map works only with normalised attention.
    """

    scaled = True

    def query(self, x, i):
        """Returns exp(x), relative to each row's largest."""
        return relative(widen(x))

    def flops(self, K):
        """The maximum and the difference from it."""
        return 2 * K


@dataclass(frozen=True)
class SoftmaxFeatures(SameWidthFeature):
    """φ(x) = softmax(x) over the components (Shen et al. 2021, the map of queries in efficient attention)."""

    def query(self, x, i):
        """Returns softmax(x)."""
        return FeatureRows(jax.nn.softmax(widen(x), axis=1))

    def flops(self, K):
        """The maximum, the difference from it, the sum and the quotient."""
        return 4 * K
