"""Words from the log-probabilities of frames, if the positions of words are known."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.data.audio.joined import NONE


def mean_words(
    nats: Float[Array, "T words"], piece: Int[Array, " T"], count: int
) -> tuple[Int[Array, " N"], Float[Array, " N"]]:
    """Returns the word of each recording in a string: the one with the greatest mean log-probability over its frames.

    Args:
        nats: The log-probability of each word in each frame.
        piece: The recording that each frame belongs to, 0 … N−1. −1 means none.
        count: N, the number of recordings in the string.

    Returns:
        The words, −1 for a recording without frames, and their probabilities: the softmax over words of those means.
    """
    member = (piece[:, None] == jnp.arange(count)[None, :]).astype(nats.dtype)
    frames = member.sum(axis=0)
    means = jnp.einsum("tn,tc->nc", member, nats) / jnp.maximum(frames, 1)[:, None]
    chances = jax.nn.softmax(means, axis=-1)
    word = jnp.where(frames > 0, jnp.argmax(chances, axis=-1), NONE)
    return word.astype(jnp.int32), chances.max(axis=-1)
