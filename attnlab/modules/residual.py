"""The residual connection around a sublayer."""

from __future__ import annotations

from collections.abc import Callable

from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.ops.layer import dropout


class Residual(nnx.Module):
    """A residual connection with norm and dropout around a function f.

    - Pre-norm: x + dropout(f(norm(x))) (Xiong et al. 2020).
    - Post-norm: norm(x + dropout(f(x))) (Vaswani et al. 2017).
    - Norm of the output: x + dropout(norm(f(x))) (OLMo 2).
    - Pre-norm and norm of the output: x + dropout(norm(f(norm(x)))) ("sandwich", Ding et al. 2021; Gemma 2).

    A layer calls `y = f(residual.before(x))` and then `residual.after(x, y, key)`.
    """

    def __init__(self, norm: Callable[[], nnx.Module], *, first: bool, output: bool, rate: float):
        """Create the norms.

        Args:
            norm: Creates a norm.
            first: True: pre-norm. False: post-norm, or no norm of the sum if `output`.
            output: True: normalise the output of f.
            rate: Dropout probability.
        """
        self.norm = norm() if first or not output else None
        self.output_norm = norm() if output else None
        self.first, self.rate = first, rate

    def before(self, x: Float[Array, "T D"]) -> Float[Array, "T D"]:
        """Return the input of f."""
        return self.norm(x) if self.norm is not None and self.first else x

    def after(self, x: Float[Array, "T D"], y: Float[Array, "T D"], key: PRNGKeyArray | None) -> Float[Array, "T D"]:
        """Return the sum of x and the output y of f. `key` None means no dropout."""
        y = y if self.output_norm is None else self.output_norm(y)
        y = x + dropout(y, self.rate, key)
        return y if self.norm is None or self.first else self.norm(y)
