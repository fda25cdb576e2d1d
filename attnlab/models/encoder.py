"""What reads a sequence to both sides: positions, layers, a norm."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attnlab.models.config import StackConfig
from attnlab.models.decoder import make_position
from attnlab.modules.block import EncoderLayer, scan_layers, stack_layers
from attnlab.modules.dense import fold_key
from attnlab.modules.position import Wrapped
from attnlab.ops.layer import dropout


class Encoder(nnx.Module):
    """A stack of encoder layers over vectors; one example.

    Raises ValueError where the positions end before `length`, the longest sequence there will be.
    """

    def __init__(self, key: PRNGKeyArray, config: StackConfig, length: int):
        sizes, mechanism = config.sizes, config.attentions["encoder"]
        self.rate, self.remat = config.dropout, config.remat
        self.position = make_position(key, config, "position", length, causal=False)
        self.layers = stack_layers(
            lambda key: EncoderLayer(key, sizes, mechanism), fold_key(key, "layers"), config.layers
        )
        # With the norm first, what leaves the last block has not been normed yet.
        self.encoded = sizes.norm_layer() if config.norm_first else None

    def __call__(
        self,
        x: Float[Array, "T D"],
        keep: Bool[Array, " T"] | None = None,
        key: PRNGKeyArray | None = None,
        first: Float[Array, " D"] | None = None,
    ) -> tuple[Float[Array, "N D"], dict[str, Any]]:
        """The sequence as it was understood, and looks by layer. `keep` False is padding; None: there is none.

        `first` is one more vector, in front of the others, to which no position is added, and which stands at −1 where
        layers are told of positions: the others keep their places, whatever padding is behind them. N = T, or T + 1
        with it.
        """
        keys = (None, None) if key is None else jax.random.split(key)
        i = np.arange(x.shape[0], dtype=np.int32)
        table = self.position.table(x.shape[0], x.dtype)
        before = self.position.per_layer(i, table)
        x, position = self.position.add(x, i, table), self.position
        if first is not None:
            x, position = jnp.concatenate([first[None].astype(x.dtype), x]), Wrapped(position)
            keep = None if keep is None else jnp.concatenate([jnp.ones(1, bool), keep])
            before = None if before is None else jnp.pad(before, ((0, 0), (1, 0), (0, 0)))
        step = lambda layer, x, key: layer(x, keep, position, key)
        x, seen = scan_layers(self.layers, dropout(x, self.rate, keys[0]), step, keys[1], before, remat=self.remat)
        return (x if self.encoded is None else self.encoded(x)), seen
