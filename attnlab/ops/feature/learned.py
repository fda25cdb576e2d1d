"""Feature maps with learned arrays."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from attnlab.ops.feature.base import Feature, Mapped
from attnlab.ops.feature.plain import Exp, SoftmaxFeatures, widen
from attnlab.ops.feature.products import square
from attnlab.ops.layer import layer_norm
from attnlab.ops.precision import product


@dataclass(frozen=True)
class T2R(Feature):
    """φ(x) = max(W x + b, 0), W and b learned and one for queries and keys (Kasai et al. 2021).

    K features. W starts Gaussian of variance 1/K, b at zero. Weights may all be zero.
    """

    @property
    def learned(self):
        """W and b."""
        return {"w": ("K", "K"), "b": ("K",)}

    def initial(self, key, K):
        """W of variance 1/K, b zero."""
        return {"w": jax.random.normal(key, (K, K), jnp.float32) * K**-0.5, "b": jnp.zeros(K, jnp.float32)}

    def dim(self, K):
        """K."""
        return K

    def flops(self, K):
        """The product, the sum, and the comparison."""
        return 2 * K * K + 2 * K

    def query(self, x, i, *, w, b):
        """max(W x + b, 0)."""
        x = widen(x)
        return Mapped(jax.nn.relu(product(x, w.astype(x.dtype).T) + b.astype(x.dtype)[None, :]))


@dataclass(frozen=True)
class Hedgehog(Feature):
    """φ(x) = [softmax(W x) ; softmax(−W x)], W learned (Zhang et al. 2024, Hedgehog).

    2K features. Queries and keys have a W each, which starts as the identity. Each half sums to one, as in the authors'
    code (LoLCATs); `joint` has one sum over both, softmax([W x ; −W x]), as in flash-linear-attention. `over` is the
    map of the halves: `Exp()` leaves the sums out, so that `joint` makes no difference.
    """

    over: Feature = SoftmaxFeatures()
    joint: bool = False
    missing_values: ClassVar[dict] = {"joint": True}

    def __post_init__(self):
        if not isinstance(self.over, SoftmaxFeatures | Exp):
            raise ValueError(f"over={self.over} must be SoftmaxFeatures() or Exp()")

    @property
    def line(self):
        """With the map of the halves by its name."""
        return super().line.replace("softmax", "exp") if isinstance(self.over, Exp) else super().line

    @property
    def scaled(self):
        """As the map of the halves."""
        return self.over.scaled

    @property
    def learned(self):
        """W of the queries, and W of the keys."""
        return {"query_w": ("K", "K"), "key_w": ("K", "K")}

    def initial(self, key, K):
        """Both the identity."""
        return {name: jnp.eye(K, dtype=jnp.float32) for name in self.learned}

    def dim(self, K):
        """2K."""
        return self.over.dim(2 * K)

    def flops(self, K):
        """The product, its negative, and the map of both."""
        return 2 * K * K + K + self.over.flops(2 * K)

    def query(self, x, i, *, query_w, key_w):
        """[softmax(W x) ; softmax(−W x)]."""
        return self._mirrored(x, query_w, i)

    def key(self, x, j, *, query_w, key_w):
        """The same, by the keys' W."""
        return self._mirrored(x, key_w, j)

    def _mirrored(self, x, w, i):
        x = widen(x)
        turned = product(x, w.astype(x.dtype).T)
        if self.joint or self.over.scaled:
            return self.over.query(jnp.concatenate([turned, -turned], axis=1), i)
        return Mapped(jnp.concatenate([self.over.query(half, i).rows for half in (turned, -turned)], axis=1))


@dataclass(frozen=True)
class Rebased(Feature):
    """φ(x) = z ⊗ z of z = γ·norm(x) + β, γ and β learned (Aksenov et al. 2024, ReBased).

    K² features, of which K(K+1)/2 differ; φ(q)·ψ(k) = (z_q·z_k)². The norm is over the components of a row, so of one
    head, as in flash-linear-attention; the authors' code takes it over all heads at once. Queries and keys have a γ,
    starting at 1, and a β, starting at 0, each. `epsilon` is added to the variance; 1e-5 is the authors' value.

    Raises ValueError for an epsilon that is not above 0.
    """

    epsilon: float = 1e-5
    signed = True
    closed = True
    missing_values: ClassVar[dict] = {"epsilon": 1e-6}

    def __post_init__(self):
        if not 0 < self.epsilon < 1:
            raise ValueError(f"epsilon={self.epsilon} must be above 0 and below 1")

    @property
    def learned(self):
        """γ and β of the queries, and of the keys."""
        return {f"{side}_{name}": ("K",) for side in ("query", "key") for name in ("scale", "shift")}

    def initial(self, key, K):
        """No scale and no shift."""
        return {name: jnp.full(K, float(name.endswith("scale")), jnp.float32) for name in self.learned}

    def dim(self, K):
        """K²."""
        return K * K

    def flops(self, K):
        """The norm, the shift, and the square."""
        return 8 * K + K * K

    def query(self, x, i, *, query_scale, query_shift, **keys):
        """The square of the queries' γ·norm(x) + β."""
        return Mapped(square(self._normalise(x, query_scale, query_shift)))

    def key(self, x, j, *, key_scale, key_shift, **queries):
        """The square of the keys' γ·norm(x) + β."""
        return Mapped(square(self._normalise(x, key_scale, key_shift)))

    def kernel(self, q, k, *, query_scale, query_shift, key_scale, key_shift):
        """s² of s = z_q·z_k."""
        q, k = self._normalise(q, query_scale, query_shift), self._normalise(k, key_scale, key_shift)
        return q, k, jnp.square

    def _normalise(self, x, scale, shift):
        return layer_norm(widen(x), scale, shift, self.epsilon)
