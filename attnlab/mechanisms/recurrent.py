"""Mechanisms that carry a memory from token to token and read the past only."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.checked import CheckedMechanism, causal_block
from attnlab.mechanisms.inputs import split
from attnlab.ops.mask import Mask
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.split import split_chunks
from attnlab.ops.token_block import TokenBlock
from attnlab.ops.varying import varying_like


@dataclass(frozen=True)
class Recurrent(CheckedMechanism):
    """A mechanism whose memory summarises all earlier tokens.

    A subclass implements `update`, and `init_memory` if its memory is not one sum [K V]. Decoding, and attention over a
    whole sequence under `Causal()`, follow. Other masks are not supported.
    """

    traits = Traits(non_causal=False, position_dependent=True)

    @abstractmethod
    def update(
        self, memory: PyTree, q, k, v, block: TokenBlock, *, bias=None, **extra
    ) -> tuple[Float[Array, "T V"], PyTree]:
        """See `CheckedMechanism.update`."""

    def init_memory(self, length: int, K: int, V: int, dtype) -> PyTree:
        """Returns an empty sum [K V] in at least float32. A sum in bfloat16 loses most of a long sequence."""
        return jnp.zeros((K, V), accumulation_dtype(dtype))

    def attend_all(self, q, k, v, mask: Mask, *, i, j, bias=None, **extra):
        """Attends under `Causal()`, if there are as many queries as keys and positions are known while tracing."""
        return self.attend_causal(q, k, v, causal_block(self, mask, i, j), bias=bias, **extra)

    def attend_causal(self, q, k, v, block: TokenBlock, *, bias=None, **extra):
        """Processes the whole sequence as one block."""
        return update_by_blocks(self, q.shape[0], q, k, v, block, bias=bias, **extra)


def update_by_blocks(
    mechanism: CheckedMechanism, size: int, q, k, v, block: TokenBlock, *, bias=None, **extra
) -> Float[Array, "T V"]:
    """Attends causally over a whole sequence by scanning `update` over blocks of `size` tokens.

    Args:
        mechanism: the mechanism.
        size: number of tokens per block.
        q: queries [T K].
        k: keys [T K].
        v: values [T V].
        block: positions, padding and segments of the T tokens.
        bias: function `bias(q, i, j)` that is added to scores, or None.
        **extra: extra inputs, by name.

    Returns:
        Output [T V].
    """
    T = q.shape[0]
    memory = mechanism.init_memory(T, q.shape[1], v.shape[1], v.dtype)
    if size >= T:
        return mechanism.update(memory, q, k, v, block, bias=bias, **extra)[0]
    per_token, rest = split(extra, {**mechanism.tokens, **mechanism.queries})
    columns = jax.tree.map(lambda x: split_chunks(x, size), {"q": q, "k": k, "v": v, **per_token})

    # Without the checkpoint, a gradient would store the intermediates of all blocks, not only the memory before each.
    @partial(jax.checkpoint, prevent_cse=False)
    def advance(memory, here):
        columns, block = here
        y, memory = mechanism.update(memory, block=block, bias=bias, **columns, **rest)
        return memory, y

    steps = columns, block.cut(size)
    _, y = jax.lax.scan(advance, varying_like(memory, steps), steps)
    return y.reshape(-1, v.shape[1])[:T]
