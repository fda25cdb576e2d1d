"""What a feature map is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.ops.mask import Places


class Mapped(NamedTuple):
    """Rows in feature space: φ(x_t) = exp(scale_t) · rows_t. `scale` None is a scale of zero.

    Only a map with exponentials has a scale, the logarithm of its largest feature: what e^scale would overflow is
    summed relative to the largest scale so far. `counted`: the rows whose products the denominator sums, where these
    are others.
    """

    rows: Float[Array, "T M"]
    scale: Float[Array, " T"] | None = None
    counted: Float[Array, "T M"] | None = None


class Feature:
    """A map φ of queries and ψ of keys, [T K] -> [T M], in whose space the product is the weight.

    Frozen, hashable, without arrays. `learned` names learned arrays, one set a head, with their shapes in terms of
    "K". `scaled` says whether it answers scales, `signed` whether features may be negative, `placed` whether rows tell
    places by themselves, `closed` whether it has a `kernel`. Rows come in float32 at least: in float16 a square of 300
    is infinite, and exp(−24) zero.
    """

    scaled = False
    signed = False
    placed = False
    closed = False

    @property
    def line(self) -> str:
        """A line about this one, in a list of several."""
        return (type(self).__doc__ or "").strip().splitlines()[0]

    @property
    def learned(self) -> dict[str, tuple]:
        """Learned arrays, one set a head."""
        return {}

    def initial(self, key: Array, K: int) -> dict[str, Array]:
        """Where the learned arrays start."""
        return {}

    def dim(self, K: int) -> int:
        """M for rows of width K."""
        raise NotImplementedError

    def flops(self, K: int) -> int:
        """Floating-point operations a row, exponentials apart."""
        return self.dim(K)

    def query(self, x: Float[Array, "T K"], i: Int[Places, " T"], **learned: Float[Array, "..."]) -> Mapped:
        """φ of every query; `i` says where they stand."""
        raise NotImplementedError

    def key(self, x: Float[Array, "S K"], j: Int[Places, " S"], **learned: Float[Array, "..."]) -> Mapped:
        """ψ of every key: φ again, unless the map tells queries and keys apart."""
        return self.query(x, j, **learned)

    def kernel(
        self, q: Float[Array, "T K"], k: Float[Array, "S K"], **learned: Float[Array, "..."]
    ) -> tuple[Float[Array, "T N"], Float[Array, "S N"], Callable[[Array], Array]]:
        """Of one that is closed: few rows q', k' and a function f of numbers, φ(q_t)·ψ(k_j) = f(q'_t·k'_j)."""
        raise NotImplementedError

    def aligned(self, i: Int[Places, " T"], j: Int[Places, " S"]) -> tuple[Places, Places]:
        """Positions of queries and keys that meet, as the map wants them: it may count from where it likes."""
        return i, j

    def check(self, i: Int[Places, " T"]) -> None:
        """Raise ValueError where positions that are known lie beyond those it is bound to."""

    def fit(self, length: int) -> None:
        """Raise ValueError where it is bound to fewer than `length` positions."""

    def sized(self, length: int) -> Feature:
        """The same for `length` positions: itself, unless it is bound to a length."""
        return self


def relative(exponent: Float[Array, "T M"]) -> Mapped:
    """exp of every exponent, over the largest of its row, and that largest one as the scale.

    The scale is a constant to a gradient: it cancels where it is used.
    """
    peak = jax.lax.stop_gradient(jnp.max(exponent, axis=1, initial=-jnp.inf, keepdims=True))
    return Mapped(jnp.exp(exponent - peak), peak[:, 0])
