"""A recurrent language model (Mikolov et al. 2010), whose state has a fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism
from attnlab.models.checks import DTYPES, check_dropout, check_names, check_sizes
from attnlab.models.output_head import OutputHead
from attnlab.models.shapes import Shape, TokenShape, check_shape
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.recurrent import RecurrentLayer
from attnlab.ops.cell import CELLS
from attnlab.ops.layer import dropout, split_keys


@dataclass(frozen=True)
class RecurrentLanguage(metaclass=Documented):
    """Configuration of a recurrent language model (RNN, GRU or LSTM) without attention.

    It is called, trained and decoded like `Language`.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 64
    """Size of embeddings and states."""
    layers: int = 2
    """Number of recurrent layers."""
    cell: Literal["rnn", "gru", "lstm", "rg-lru"] = "gru"
    """Kind of recurrent cell."""
    dropout: float = 0.0
    """Dropout probability, applied to symbols, between layers and before the output."""
    scale_embeddings: bool = True
    """True: multiply embeddings by √width, as Transformers do."""
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"
    """Data type of the computation. Parameters are float32, and states at least float32."""

    def __post_init__(self):
        check_sizes(width=self.width, layers=self.layers)
        check_names(cell=(self.cell, CELLS), dtype=(self.dtype, DTYPES))
        check_dropout(self.dropout)

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """Empty: the model has no attention."""
        return {}

    def create(self, key: PRNGKeyArray, shape: Shape) -> RecurrentLanguageNetwork:
        """Create a network for sequences of `shape` (`attnlab.tasks.Tokens`)."""
        shape = check_shape(self, shape, TokenShape)
        return RecurrentLanguageNetwork(key, self, shape.vocabulary)


class RecurrentLanguageNetwork(OutputHead):
    """The network of a `RecurrentLanguage`, for one example. Its state does not grow with the sequence."""

    def __init__(self, key: PRNGKeyArray, config: RecurrentLanguage, vocabulary: int):
        width = config.width
        self.config = config
        self.embed = Embed(fold_key(key, "embed"), vocabulary, width, config.scale_embeddings)
        self.layers = RecurrentLayer(
            fold_key(key, "layers"), config.cell, width, width, config.layers, rate=config.dropout
        )
        self.output = Dense(fold_key(key, "output"), width, vocabulary)

    def __call__(
        self, tokens: Int[Array, " T"], keep: Bool[Array, " T"] | None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, "T vocabulary"]:
        """Return the logits of every next token, at least float32. `keep` is False at padding, or None."""
        return self.outputs_and_maps(tokens, keep, key)[0]

    def hidden_states(self, tokens, keep=None, key=None) -> tuple[Float[Array, "T D"], dict]:
        """Return the hidden states before the output map, and no attention maps."""
        keys = split_keys(key, 3)
        x = dropout(self.embed(tokens, self.dtype), self.config.dropout, keys[0])
        y, _ = self.layers(x, keep, keys[1])
        return dropout(y, self.config.dropout, keys[2]), {}

    def start(self, length: int) -> PyTree:
        """Return the state before the first token. It is the same for any `length`."""
        return self.layers.start(self.dtype)

    def step(self, state: PyTree, token: Int[Array, ""]) -> tuple[Float[Array, " vocabulary"], PyTree]:
        """Return the logits of the token after `token`, and the new state."""
        gates = self.layers.gates(self.embed(token[None], self.dtype), None)[0][0]
        y, state = self.layers.step(gates, state)
        return self.logits(y[None])[0], state

    @property
    def dtype(self) -> jnp.dtype:
        """The data type of the computation."""
        return jnp.dtype(self.config.dtype)
