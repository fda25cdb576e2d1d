"""Feature maps with learned arrays."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from attnlab.ops.feature.base import Feature, FeatureRows
from attnlab.ops.feature.elementwise import Exp, SoftmaxFeatures, widen
from attnlab.ops.feature.products import square
from attnlab.ops.layer import layer_norm
from attnlab.ops.precision import matmul


@dataclass(frozen=True)
class T2R(Feature):
    """φ(x) = max(W x + b, 0), W and b learned, shared by queries and keys (Kasai et al. 2021).

    It has K features. W is initialized as a Gaussian of variance 1/K, and b as zero. Weights may all be zero.
    """

    @property
    def learned(self):
        """Shapes of W and b."""
        return {"w": ("K", "K"), "b": ("K",)}

    def initial(self, key, K):
        """Returns W with variance 1/K, and b zero."""
        return {"w": jax.random.normal(key, (K, K), jnp.float32) * K**-0.5, "b": jnp.zeros(K, jnp.float32)}

    def dim(self, K):
        """Returns K."""
        return K

    def flops(self, K):
        """The product, the sum and the comparison."""
        return 2 * K * K + 2 * K

    def query(self, x, i, *, w, b):
        """Returns max(W x + b, 0)."""
        x = widen(x)
        return FeatureRows(jax.nn.relu(matmul(x, w.astype(x.dtype).T) + b.astype(x.dtype)[None, :]))


@dataclass(frozen=True)
class Hedgehog(Feature):
    """φ(x) = [softmax(W x) ; softmax(−W x)], W learned (Zhang et al. 2024, Hedgehog).

    It has 2K features. Queries and keys have a W each, initialized as the identity.

    Raises:
      ValueError: if `activation` is neither `SoftmaxFeatures()` nor `Exp()`.
    """

    activation: Feature = SoftmaxFeatures()
    """Map of the halves. `Exp()` omits the sums, as the paper's equation does; `joint` then makes no difference.

    The exponentials of LoLCATs are other features: there each half is divided by its own largest exponential.
    """
    joint: bool = False
    """Whether one sum is taken over both halves, softmax([W x ; −W x]).

    Flash-linear-attention does so too, but adds a bias to W x and doubles the sum: softmax([2(W x + b) ; −2(W x +
    b)]). With W twice as large, joint features equal those features without the bias. If False, each half sums to one,
    as in the authors' code (LoLCATs).
    """
    missing_values: ClassVar[dict] = {"joint": True}
    """Values of fields that are absent in configurations of older versions."""

    def __post_init__(self):
        if not isinstance(self.activation, SoftmaxFeatures | Exp):
            raise ValueError(f"activation={self.activation} must be SoftmaxFeatures() or Exp()")

    @property
    def line(self):
        """The first line of the docstring, with the name of the map of the halves."""
        return super().line.replace("softmax", "exp") if isinstance(self.activation, Exp) else super().line

    @property
    def scaled(self):
        """Whether the map of the halves returns scales."""
        return self.activation.scaled

    @property
    def learned(self):
        """Shapes of W for queries and W for keys."""
        return {"query_w": ("K", "K"), "key_w": ("K", "K")}

    def initial(self, key, K):
        """Returns the identity for both."""
        return {name: jnp.eye(K, dtype=jnp.float32) for name in self.learned}

    def dim(self, K):
        """Returns 2K."""
        return self.activation.dim(2 * K)

    def flops(self, K):
        """The product, its negative, and the map of both."""
        return 2 * K * K + K + self.activation.flops(2 * K)

    def query(self, x, i, *, query_w, key_w):
        """Returns [softmax(W x) ; softmax(−W x)] with the W of queries."""
        return self._mirrored(x, query_w, i)

    def key(self, x, j, *, query_w, key_w):
        """Returns the same with the W of keys."""
        return self._mirrored(x, key_w, j)

    def _mirrored(self, x, w, i):
        """Maps both halves, W x and −W x."""
        x = widen(x)
        turned = matmul(x, w.astype(x.dtype).T)
        if self.joint or self.activation.scaled:
            return self.activation.query(jnp.concatenate([turned, -turned], axis=1), i)
        return FeatureRows(jnp.concatenate([self.activation.query(half, i).rows for half in (turned, -turned)], axis=1))


@dataclass(frozen=True)
class Rebased(Feature):
    """φ(x) = z ⊗ z of z = γ·norm(x) + β, γ and β learned (Aksenov et al. 2024, ReBased).

    It has K² features, of which K(K+1)/2 are distinct, and φ(q)·ψ(k) = (z_q·z_k)². Queries and keys have their own γ,
    initialized as 1, and β, initialized as 0. The norm is over the components of one head, as in
    flash-linear-attention. The authors' code normalises over all heads at once.

    Raises:
      ValueError: if `epsilon` is not above 0 and below 1.
    """

    epsilon: float = 1e-5
    """Number that is added to the variance. The default 1e-5 is the authors' value."""
    signed = True
    has_kernel = True
    missing_values: ClassVar[dict] = {"epsilon": 1e-6}
    """Values of fields that are absent in configurations of older versions."""

    def __post_init__(self):
        if not 0 < self.epsilon < 1:
            raise ValueError(f"epsilon={self.epsilon} must be above 0 and below 1")

    @property
    def learned(self):
        """Shapes of γ and β for queries and for keys."""
        return {f"{side}_{name}": ("K",) for side in ("query", "key") for name in ("scale", "shift")}

    def initial(self, key, K):
        """Returns γ = 1 and β = 0."""
        return {name: jnp.full(K, float(name.endswith("scale")), jnp.float32) for name in self.learned}

    def dim(self, K):
        """Returns K²."""
        return K * K

    def flops(self, K):
        """The norm, the shift and the square."""
        return 8 * K + K * K

    def query(self, x, i, *, query_scale, query_shift, **keys):
        """Returns z ⊗ z with the γ and β of queries."""
        return FeatureRows(square(self._normalise(x, query_scale, query_shift)))

    def key(self, x, j, *, key_scale, key_shift, **queries):
        """Returns z ⊗ z with the γ and β of keys."""
        return FeatureRows(square(self._normalise(x, key_scale, key_shift)))

    def kernel(self, q, k, *, query_scale, query_shift, key_scale, key_shift):
        """Returns z_q, z_k and the square function."""
        q, k = self._normalise(q, query_scale, query_shift), self._normalise(k, key_scale, key_shift)
        return q, k, jnp.square

    def _normalise(self, x, scale, shift):
        """Returns z = γ·norm(x) + β."""
        return layer_norm(widen(x), scale, shift, self.epsilon)
