"""The bidirectional encoder: positions, layers and a norm."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from attnlab.models.config import StackConfig, layers_of_period
from attnlab.models.decoder import make_position
from attnlab.modules.block import EncoderLayer
from attnlab.modules.dense import fold_key
from attnlab.modules.position import ShiftedByOne
from attnlab.modules.stack import first_values, scan_layers, stack_layers
from attnlab.ops.layer import dropout, split_keys


def encoder_layers(config: StackConfig) -> list[Callable[[PRNGKeyArray], EncoderLayer]]:
    """Return the constructors of the encoder layers of one period of the configuration's patterns."""
    layer = lambda sizes, mechanism: lambda key: EncoderLayer(key, sizes, mechanism)
    return [layer(sizes, each) for sizes, (each,) in layers_of_period(config, config.attentions["encoder"])]


class Encoder(nnx.Module):
    """A stack of encoder layers over vectors, for one example.

    Args:
        key: Key for the initial parameters.
        config: The configuration of the model.
        length: Length of the longest sequence.

    Raises:
        ValueError: The position encoding does not support sequences of `length`.
    """

    def __init__(self, key: PRNGKeyArray, config: StackConfig, length: int):
        self.rate, self.remat = config.dropout, config.remat
        self.position = make_position(key, config, "position", length, causal=False)
        self.layers = stack_layers(encoder_layers(config), fold_key(key, "layers"), config.layers)
        # With pre-norm, the output of the last layer is not normalised yet.
        self.encoded = config.sizes.final_norm()

    def __call__(
        self,
        x: Float[Array, "T D"],
        keep: Bool[Array, " T"] | None = None,
        key: PRNGKeyArray | None = None,
        first: Float[Array, " D"] | None = None,
    ) -> tuple[Float[Array, "N D"], dict[str, PyTree]]:
        """Encode a sequence.

        Args:
            x: The sequence.
            keep: False marks padding. Positions count padding, so it belongs after the sequence. None means no padding.
            key: Key for dropout. None means no dropout.
            first: An extra vector before the sequence, or None. No position is added to it, and the layers see it at
                position −1. The positions of the sequence therefore stay the same.

        Returns:
            The encoded sequence, N = T, or N = T + 1 with `first`; and the maps {"encoder": [L H N N], or None}.
        """
        keys = split_keys(key, 2)
        i = np.arange(x.shape[0], dtype=np.int32)
        table = self.position.table(x.shape[0], x.dtype)
        places = self.position.per_layer(i, table)
        x, position = self.position.add(x, i, table), self.position
        if first is not None:
            x, position = jnp.concatenate([first[None].astype(x.dtype), x]), ShiftedByOne(position)
            keep = None if keep is None else jnp.concatenate([jnp.ones(1, bool), keep])
            places = None if places is None else jnp.pad(places, ((0, 0), (1, 0), (0, 0)))
        x = dropout(x, self.rate, keys[0])
        first = first_values(self.layers, x, places)
        x, seen = scan_layers(self.layers, x, keep, position, first, key=keys[1], places=places, remat=self.remat)
        return (x if self.encoded is None else self.encoded(x)), seen
