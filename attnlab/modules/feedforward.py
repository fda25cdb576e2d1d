"""The feed-forward layer."""

from collections.abc import Callable

from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.modules.dense import Dense, fold_key
from attnlab.ops.layer import ACTIVATIONS, GATED_ACTIVATIONS, dropout


class FeedForward(nnx.Module):
    """Feed-forward block activation(x W_1) W_2 (Vaswani et al. 2017, eq. 2).

    With a gated activation it is (activation(x W_1) ∘ x W_3) W_2 (Shazeer 2020, eq. 5 and 6). The activation is the
    sigmoid for "glu", ReLU for "reglu", the exact GELU for "geglu" and SiLU for "swiglu".

    Args:
        key: Key for the initial parameters.
        width: Size D of inputs and outputs.
        hidden: Size of the hidden layer.
        activation: A name in `attnlab.ops.layer.ACTIVATIONS` or `GATED_ACTIVATIONS`.
        rate: Dropout probability of the hidden layer.
        dense: Constructor of the linear maps, called as `dense(key, inputs, outputs)`.

    Raises:
        ValueError: The activation is unknown.
    """

    def __init__(
        self,
        key: PRNGKeyArray,
        width: int,
        hidden: int,
        activation: str,
        rate: float,
        dense: Callable[..., Dense] = Dense,
    ):
        if activation not in (known := (*ACTIVATIONS, *GATED_ACTIVATIONS)):
            raise ValueError(f"{activation=} must be one of {', '.join(known)}")
        self.inner = dense(fold_key(key, "inner"), width, hidden)
        self.outer = dense(fold_key(key, "outer"), hidden, width)
        self.gate = dense(fold_key(key, "gate"), width, hidden) if activation in GATED_ACTIVATIONS else None
        self.activation, self.rate = activation, rate

    def __call__(self, x: Float[Array, "T D"], key: PRNGKeyArray | None = None) -> Float[Array, "T D"]:
        """Compute the block for one example. `key` None means no dropout."""
        active = (ACTIVATIONS | GATED_ACTIVATIONS)[self.activation](self.inner(x))
        active = active if self.gate is None else active * self.gate(x)
        return self.outer(dropout(active, self.rate, key))
