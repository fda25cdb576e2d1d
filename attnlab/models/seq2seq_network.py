"""The network of recurrent sequence-to-sequence models, with or without attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from attnlab.models.output_head import OutputHead
from attnlab.models.shapes import TokenPairShape
from attnlab.modules.block import Context
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.recurrent import RecurrentLayer
from attnlab.modules.recurrent_attention import RecurrentAttention
from attnlab.ops.cell import CELLS
from attnlab.ops.layer import dropout, split_keys
from attnlab.ops.mask import KeyPadding, QueryPadding
from attnlab.ops.tree import pytree, static
from attnlab.ops.varying import varying_like


@pytree
@dataclass(frozen=True)
class Decoding:
    """The decoding state between two target symbols."""

    layers: PyTree
    """State of the recurrent layers."""
    fed: Float[Array, " D"] | None
    """The vector h̃ of the last step if `input_feeding` is True, else None."""
    encoded: Context
    """What the decoder gets of the source, and which of its symbols are not padding."""
    i: Int[Array, ""]
    """Position of the next symbol."""
    length: int = static()
    """Number of symbols for which there is room."""


class Seq2SeqNetwork(OutputHead):
    """The network of a `Seq2Seq` (`attnlab.models.seq2seq`), for one example.

    A call runs the decoder on a given target (teacher forcing). `start` and `step` decode symbol by symbol.

    A source may be padded anywhere. Its symbols have positions 0, 1, …, without counting padding. A target is padded at
    the end.
    """

    def __init__(self, key: PRNGKeyArray, config: Any, shape: TokenPairShape):
        width, symbols, size = config.width, config.symbols, config.encoder_size
        every, cross = config.context == "every", config.attentions.get("cross")
        deep = every or config.attention == "bahdanau"
        fed = width if config.input_feeding else size if deep else 0
        self.config = config
        scaled = config.scale_embeddings
        self.source = Embed(fold_key(key, "source"), shape.source_vocabulary, symbols, scaled)
        self.target = Embed(fold_key(key, "target"), shape.target_vocabulary, symbols, scaled)
        sizes = (config.cell, symbols, width, config.layers, config.bidirectional, config.dropout)
        self.encoder = RecurrentLayer(fold_key(key, "encoder"), *sizes)
        self.decoder = RecurrentLayer(
            fold_key(key, "decoder"), config.cell, symbols + fed, width, config.layers, rate=config.dropout
        )
        self.bridge = self._bridge(fold_key(key, "bridge")) if config.bridge == "project" else None
        self.reader = (
            None if cross is None else RecurrentAttention(fold_key(key, "cross"), width, size, config.heads, cross)
        )
        self.joint = self._joint(fold_key(key, "joint"), deep) if deep or cross is not None else None
        self.output = None if config.tied else Dense(fold_key(key, "output"), width, shape.target_vocabulary)

    def __call__(
        self,
        source: Int[Array, " S"],
        target: Int[Array, " T"],
        source_keep: Bool[Array, " S"],
        target_keep: Bool[Array, " T"],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "T vocabulary"]:
        """Return the logits of every next target symbol, at least float32."""
        return self.outputs_and_maps(source, target, source_keep, target_keep, key)[0]

    def hidden_states(self, source, target, source_keep, target_keep, key=None) -> tuple[Float[Array, "T D"], dict]:
        """Return the hidden states before the output map, and the maps {"cross": [1 H T S]}.

        The map is None without attention or without an observer.
        """
        keys = split_keys(key, 5)
        layers, encoded = self._encode(*left_align(source, source_keep), keys[:2])
        e = self._embed(self.target, target, keys[2])
        decode = self._one_by_one if self._looped else self._at_once
        x, maps = decode(e, target_keep, layers, encoded, keys[3])
        if maps is not None:
            # The map has the left-aligned symbols as columns. Move each back to the column of its symbol in `source`.
            maps = jnp.where(source_keep[None, None, :], maps[..., _places(source_keep)], 0)[None]
        return dropout(x, self.config.dropout, keys[4]), {"cross": maps}

    def start(self, source: Int[Array, " S"], source_keep: Bool[Array, " S"], length: int) -> Decoding:
        """Encode the source and return the state before the first target symbol, with room for `length` symbols."""
        layers, encoded = self._encode(*left_align(source, source_keep))
        return Decoding(layers, self._unfed, self._precomputed(encoded), jnp.zeros((), jnp.int32), length)

    def step(self, state: Decoding, token: Int[Array, ""]) -> tuple[Float[Array, " vocabulary"], Decoding]:
        """Return the logits of the symbol after `token`, and the new state."""
        e = self._embed(self.target, token[None])
        gates = self.decoder.gates(e, jnp.ones(1, bool))[0][0]
        (layers, fed), outputs = self._advance((state.layers, state.fed), state.encoded, gates, state.i)
        h, c, fed_back, _ = jax.tree.map(lambda x: x[None], outputs)
        scores = self.logits(self._join(h, e, c) if fed_back is None else fed_back)
        return scores[0], replace(state, layers=layers, fed=fed, i=state.i + 1)

    def _bridge(self, key: PRNGKeyArray):
        """Create a linear map for each part of each layer's state."""
        parts, config = CELLS[self.config.cell].states, self.config
        dense = lambda n, part: Dense(fold_key(key, f"{n} {part}"), config.encoder_size, config.width)
        return nnx.List(nnx.List(dense(n, part) for part in range(parts)) for n in range(config.layers))

    def _joint(self, key: PRNGKeyArray, deep: bool) -> Dense:
        """Create the linear map of `_join`: that of a deep output, or Luong's W_c."""
        width, symbols, size = self.config.width, self.config.symbols, self.config.encoder_size
        return Dense(key, width + symbols + size, 2 * width) if deep else Dense(key, size + width, width, bias=False)

    @property
    def dtype(self) -> jnp.dtype:
        """The data type of the computation."""
        return jnp.dtype(self.config.dtype)

    @property
    def _looped(self) -> bool:
        """Whether states depend on earlier contexts, so that the steps must be computed one after another."""
        return self.config.attention == "bahdanau" or self.config.input_feeding

    @property
    def _unfed(self) -> Array | None:
        """The value of `Decoding.fed` before the first step."""
        return jnp.zeros(self.config.width, self.dtype) if self.config.input_feeding else None

    def _embed(self, embed: Embed, ids, key=None):
        return dropout(embed(ids, self.dtype), self.config.dropout, key)

    def _encode(self, source, keep, keys=(None, None)) -> tuple[PyTree, Context]:
        """Return the decoder's initial state and what it reads of a source that is left-aligned.

        Its vectors are keys and values for attention, or the encoder's last state [M] if `context` is "every".
        """
        vectors, last = self.encoder(self._embed(self.source, source, keys[0]), keep, keys[1])
        known = None if self.reader is None else self.reader.keys_values(vectors)
        if self.config.context == "every":
            known = last[-1][0].astype(self.dtype)
        return self._bridged(last), Context(known, keep)

    def _bridged(self, last: PyTree) -> PyTree:
        """Return the decoder's initial state, given the encoder's last state.

        With `bridge="project"` it is tanh(W h + b) for h, and W c + b for c of an LSTM, which is not bounded.
        """
        if self.config.bridge == "none":
            return self.decoder.start(self.dtype)
        if self.bridge is None:
            return last
        projected = [
            [dense(x[None, :])[0] for dense, x in zip(*pair, strict=True)]
            for pair in zip(self.bridge, last, strict=True)
        ]
        return tuple((jnp.tanh(h), *c) for h, *c in projected)

    def _precomputed(self, encoded: Context) -> Context:
        """Return the encoded source prepared for single steps (`RecurrentAttention.precompute_keys`)."""
        return (
            encoded if self.reader is None else replace(encoded, vectors=self.reader.precompute_keys(encoded.vectors))
        )

    def _at_once(self, e, keep, layers, encoded: Context, key) -> tuple[Float[Array, "T D"], Array | None]:
        """Compute all states first, then all contexts. Return the hidden states and the maps [H T S] or None."""
        gates, c, maps = self.decoder.gates(e, keep), None, None
        if self.config.context == "every":
            c = encoded.vectors[None, :]
            gates = tuple(map(jnp.add, gates, self.decoder.partial_gates(c, self.config.symbols)))
            c = jnp.broadcast_to(c, (e.shape[0], c.shape[1]))
        h, _ = self.decoder.run(gates, keep, key, layers)
        if self.reader is not None:
            c, maps = self.reader.read(h, encoded.vectors, KeyPadding(encoded.keep) & QueryPadding(keep))
        return self._join(h, e, c), maps

    def _one_by_one(self, e, keep, layers, encoded: Context, key) -> tuple[Float[Array, "T D"], Array | None]:
        """Compute one step after another, because states depend on contexts. Return the same as `_at_once`."""
        encoded, T = self._precomputed(encoded), e.shape[0]
        gates, masks = self.decoder.gates(e, keep)[0], self.decoder.masks(T, e.dtype, key)

        def advance(old, inputs):
            gates, kept, i, masks = inputs
            new, outputs = self._advance(old, encoded, gates, i, masks)
            return jax.tree.map(lambda new, old: jnp.where(kept, new, old), new, old), outputs

        steps = gates, keep, jnp.arange(T, dtype=jnp.int32), masks
        _, outputs = jax.lax.scan(advance, varying_like((layers, self._unfed), (steps, encoded)), steps)
        h, c, fed, maps = outputs
        maps = None if maps is None else maps.swapaxes(0, 1)
        return (self._join(h, e, c) if fed is None else fed), maps

    def _advance(
        self, state: tuple[PyTree, Array | None], encoded: Context, gates, i, masks=None
    ) -> tuple[PyTree, PyTree]:
        """Compute one step of the decoder.

        Args:
            state: The state of the recurrent layers, and the vector h̃ to feed back or None.
            encoded: The result of `_precomputed`.
            gates: The symbol's contribution to the gates.
            i: Position of the symbol.
            masks: Dropout factors of the step, or None.

        Returns:
            The new state, and (h [D], c [M], h̃ [D], map [H S]). Of these, c, h̃ and the map may be None.
        """
        (layers, fed), c, attention_map = state, None, None

        def read(x):
            assert self.reader is not None  # ensured by `config.attention`
            return self.reader.step(x.astype(self.dtype), encoded.vectors, encoded.keep, i)

        if self.config.attention == "bahdanau":
            c, attention_map = read(layers[-1][0])
        elif self.config.context == "every":
            c = encoded.vectors
        if (extra := c if fed is None else fed) is not None:
            gates = gates + self.decoder.partial_gates(extra[None, :], self.config.symbols)[0][0]
        h, layers = self.decoder.step(gates, layers, masks)
        if self.config.attention == "luong":
            c, attention_map = read(h)
        if fed is not None and c is not None:
            fed = self._join(h[None, :], None, c[None, :])[0]
        return (layers, fed), (h, c, fed, attention_map)

    def _join(self, h, e, c) -> Float[Array, "T D"]:
        """Return the input of the output map.

        It is h itself, h̃ = tanh([c ; h] W) with "luong", or the maximum of each pair of components of
        [h ; e ; c] W + b in a deep output.
        """
        if self.joint is None:
            return h
        if self.config.attention == "luong":
            return jnp.tanh(self.joint(jnp.concatenate([c, h], axis=1)))
        # Maxout (Goodfellow et al. 2013), as in the deep output of Bahdanau et al. 2015, appendix A.2.2.
        return self.joint(jnp.concatenate([h, e, c], axis=1)).reshape(h.shape[0], -1, 2).max(axis=2)


def left_align(ids: Int[Array, " S"], keep: Bool[Array, " S"]) -> tuple[Int[Array, " S"], Bool[Array, " S"]]:
    """Move the symbols before all padding, in their order. Return them, and which entries are not padding."""
    moved = jnp.zeros_like(ids).at[jnp.where(keep, _places(keep), ids.shape[0])].set(ids, mode="drop")
    return moved, jnp.arange(ids.shape[0], dtype=jnp.int32) < keep.sum(dtype=jnp.int32)


def _places(keep: Bool[Array, " S"]) -> Int[Array, " S"]:
    """Return the index to which `left_align` moves each symbol. Padding gets that of an earlier symbol, or 0."""
    return jnp.maximum(jnp.cumsum(keep, dtype=jnp.int32) - 1, 0)
