"""The network of recurrent sequence-to-sequence models, with or without attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.models.output_head import OutputHead
from attnlab.modules.block import Memory
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.recurrent import RecurrentAttention, RecurrentLayer
from attnlab.ops.cell import CELLS
from attnlab.ops.layer import dropout
from attnlab.ops.mask import KeyPadding, QueryPadding
from attnlab.ops.tree import pytree, static


@pytree
@dataclass(frozen=True)
class Decoding:
    """The state of decoding between two symbols."""

    layers: Any
    """The states of the decoder's layers."""
    fed: Any
    """The vector that is fed back into the decoder, or None if nothing is."""
    memory: Memory
    """The encoded source."""
    i: Any
    """The position of the next symbol."""
    length: int = static()
    """The number of symbols that there is room for."""


class Seq2SeqNetwork(OutputHead):
    """The network of a `Seq2Seq` (`attnlab.models.seq2seq`); one example.

    Calling it teacher-forces a target; `start` and `step` decode symbol after symbol. Sources may be padded anywhere:
    their symbols stand at 0, 1, … in their order, padding left out. Targets are padded behind.
    """

    def __init__(self, key: PRNGKeyArray, config: Any, shape: Any):
        width, symbols, memory = config.width, config.symbols, config.memory
        every, cross = config.context == "every", config.attentions.get("cross")
        deep = every or config.attention == "bahdanau"
        fed = width if config.input_feeding else memory if deep else 0
        self.config = config
        scaled = config.scale_embeddings
        self.source = Embed(fold_key(key, "source"), shape.source_vocabulary, symbols, scaled)
        self.target = Embed(fold_key(key, "target"), shape.target_vocabulary, symbols, scaled)
        sizes = (config.cell, symbols, width, config.layers, config.bidirectional, config.dropout)
        self.encoder = RecurrentLayer(fold_key(key, "encoder"), *sizes)
        self.decoder = RecurrentLayer(
            fold_key(key, "decoder"), config.cell, symbols + fed, width, config.layers, rate=config.dropout
        )
        self.bridge: Any = self._bridge(fold_key(key, "bridge")) if config.bridge == "project" else None
        self.reader: Any = (
            None if cross is None else RecurrentAttention(fold_key(key, "cross"), width, memory, config.heads, cross)
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

    def hidden_with_maps(self, source, target, source_keep, target_keep, key=None) -> tuple[Float[Array, "T D"], dict]:
        """What the scores are made of, and what a watched attention saw: {"cross": [1 H T S] or None}."""
        keys = [None] * 5 if key is None else jax.random.split(key, 5)
        layers, memory = self._encode(*left_align(source, source_keep), keys[:2])
        e = self._embed(self.target, target, keys[2])
        forced = self._one_by_one if self._looped else self._at_once
        x, seen = forced(e, target_keep, layers, memory, keys[3])
        if seen is not None:
            # Each weight in the column where its symbol was given.
            seen = jnp.where(source_keep[None, None, :], seen[..., _places(source_keep)], 0)[None]
        return dropout(x, self.config.dropout, keys[4]), {"cross": seen}

    def start(self, source: Int[Array, " S"], source_keep: Bool[Array, " S"], length: int) -> Decoding:
        """Encode the source and return the state before the first target symbol, with room for `length` symbols."""
        layers, memory = self._encode(*left_align(source, source_keep))
        return Decoding(layers, self._unfed, self._ready(memory), jnp.zeros((), jnp.int32), length)

    def step(self, state: Decoding, token: Int[Array, ""]) -> tuple[Float[Array, " vocabulary"], Decoding]:
        """Return the logits of the symbol after `token`, and the new state."""
        e = self._embed(self.target, token[None])
        gates = self.decoder.gates(e, jnp.ones(1, bool))[0][0]
        (layers, fed), made = self._advance((state.layers, state.fed), state.memory, gates, state.i)
        h, c, fed_back, _ = jax.tree.map(lambda x: x[None], made)
        scores = self.logits(self._join(h, e, c) if fed_back is None else fed_back)
        return scores[0], replace(state, layers=layers, fed=fed, i=state.i + 1)

    def _bridge(self, key: PRNGKeyArray) -> nnx.Module:
        """A map for each part of each layer's state."""
        parts, config = CELLS[self.config.cell].states, self.config
        dense = lambda n, part: Dense(fold_key(key, f"{n} {part}"), config.memory, config.width)
        return nnx.List(nnx.List(dense(n, part) for part in range(parts)) for n in range(config.layers))

    def _joint(self, key: PRNGKeyArray, deep: bool) -> Dense:
        width, symbols, memory = self.config.width, self.config.symbols, self.config.memory
        return (
            Dense(key, width + symbols + memory, 2 * width) if deep else Dense(key, memory + width, width, bias=False)
        )

    @property
    def dtype(self) -> Any:
        """The data type of the computation."""
        return jnp.dtype(self.config.dtype)

    @property
    def _looped(self) -> bool:
        """Whether what is read enters the states, so that steps cannot be made at once."""
        return self.config.attention == "bahdanau" or self.config.input_feeding

    @property
    def _unfed(self) -> Array | None:
        """What is fed back before the first step."""
        return jnp.zeros(self.config.width, self.dtype) if self.config.input_feeding else None

    def _embed(self, embed: Embed, ids, key=None):
        return dropout(embed(ids, self.dtype), self.config.dropout, key)

    def _encode(self, source, keep, keys=(None, None)) -> tuple[Any, Memory]:
        """The decoder's first state, and what it reads of the source."""
        vectors, last = self.encoder(self._embed(self.source, source, keys[0]), keep, keys[1])
        known = None if self.reader is None else self.reader.keys_values(vectors)
        if self.config.context == "every":
            known = last[-1][0].astype(self.dtype)
        return self._bridged(last), Memory(known, keep)

    def _bridged(self, last: Any) -> Any:
        """The decoder's first state: h of its layers at tanh(W h), c, which has no bounds, at W c."""
        if self.config.bridge == "none":
            return self.decoder.start(self.dtype)
        if self.bridge is None:
            return last
        made = [
            [dense(x[None, :])[0] for dense, x in zip(*pair, strict=True)]
            for pair in zip(self.bridge, last, strict=True)
        ]
        return tuple((jnp.tanh(h), *c) for h, *c in made)

    def _ready(self, memory: Memory) -> Memory:
        return memory if self.reader is None else replace(memory, vectors=self.reader.ready(memory.vectors))

    def _at_once(self, e, keep, layers, memory: Memory, key) -> tuple[Float[Array, "T D"], Any]:
        """All states first, then all that they read."""
        gates, c, seen = self.decoder.gates(e, keep), None, None
        if self.config.context == "every":
            c = memory.vectors[None, :]
            gates = tuple(map(jnp.add, gates, self.decoder.share(c, self.config.symbols)))
            c = jnp.broadcast_to(c, (e.shape[0], c.shape[1]))
        h, _ = self.decoder.run(gates, keep, key, layers)
        if self.reader is not None:
            c, seen = self.reader.read(h, memory.vectors, KeyPadding(memory.keep) & QueryPadding(keep))
        return self._join(h, e, c), seen

    def _one_by_one(self, e, keep, layers, memory: Memory, key) -> tuple[Float[Array, "T D"], Any]:
        """State after state, each with what it reads or is fed."""
        memory, T = self._ready(memory), e.shape[0]
        gates, masks = self.decoder.gates(e, keep)[0], self.decoder.masks(T, e.dtype, key)

        def advance(old, here):
            gates, kept, i, masks = here
            new, made = self._advance(old, memory, gates, i, masks)
            return jax.tree.map(lambda new, old: jnp.where(kept, new, old), new, old), made

        _, made = jax.lax.scan(advance, (layers, self._unfed), (gates, keep, jnp.arange(T, dtype=jnp.int32), masks))
        h, c, fed, seen = made
        seen = None if seen is None else seen.swapaxes(0, 1)
        return (self._join(h, e, c) if fed is None else fed), seen

    def _advance(self, state: tuple[Any, Any], memory: Memory, gates, i, masks=None) -> tuple[Any, Any]:
        """One step: (the decoder's state, what is fed back), and (h [D], c [M], what is fed back, a look [H S])."""
        (layers, fed), c, seen = state, None, None
        read = lambda x: self.reader.step(x.astype(self.dtype), memory.vectors, memory.keep, i)
        if self.config.attention == "bahdanau":
            c, seen = read(layers[-1][0])
        elif self.config.context == "every":
            c = memory.vectors
        if (given := c if fed is None else fed) is not None:
            gates = gates + self.decoder.share(given[None, :], self.config.symbols)[0][0]
        h, layers = self.decoder.step(gates, layers, masks)
        if self.config.attention == "luong":
            c, seen = read(h)
        if fed is not None and c is not None:
            fed = self._join(h[None, :], None, c[None, :])[0]
        return (layers, fed), (h, c, fed, seen)

    def _join(self, h, e, c) -> Float[Array, "T D"]:
        """What is scored: h itself, Luong's tanh([c ; h] W), or the greater of each pair in [h ; e ; c] W + b."""
        if self.joint is None:
            return h
        if self.config.attention == "luong":
            return jnp.tanh(self.joint(jnp.concatenate([c, h], axis=1)))
        # Maxout (Goodfellow et al. 2013), as in the deep output of Bahdanau et al. 2015, appendix A.2.2.
        return self.joint(jnp.concatenate([h, e, c], axis=1)).reshape(h.shape[0], -1, 2).max(axis=2)


def left_align(ids: Int[Array, " S"], keep: Bool[Array, " S"]) -> tuple[Int[Array, " S"], Bool[Array, " S"]]:
    """The kept symbols before all padding, in their order, and which these are."""
    moved = jnp.zeros_like(ids).at[jnp.where(keep, _places(keep), ids.shape[0])].set(ids, mode="drop")
    return moved, jnp.arange(ids.shape[0], dtype=jnp.int32) < keep.sum(dtype=jnp.int32)


def _places(keep: Bool[Array, " S"]) -> Int[Array, " S"]:
    """Where `left_align` puts each kept symbol; 0 for padding before the first."""
    return jnp.maximum(jnp.cumsum(keep, dtype=jnp.int32) - 1, 0)
