"""The attention scores of a trained model: the input of the softmax, or what it would be."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attnlab.analysis.maps import MappedModel, observations
from attnlab.mechanisms import Linear, Mechanism, ShortConvolution
from attnlab.mechanisms.inputs import arrays
from attnlab.mechanisms.pattern_softmax import PatternSoftmax
from attnlab.mechanisms.position_state import initial_block
from attnlab.mechanisms.rotated import Rotated
from attnlab.mechanisms.synthesizer import Synthesizer
from attnlab.mechanisms.window import LocalP
from attnlab.ops.feature import RotatedFeatures
from attnlab.ops.learned_score import Scores
from attnlab.ops.mask import ArrayOrNumpy, Full, Mask
from attnlab.ops.score import scaled_dot
from attnlab.ops.softmax import masked_softmax
from attnlab.ops.token_block import dense_mask

# For each attention, which boolean inputs of the model are the padding masks of its (queries, keys).
SIDES = {"encoder": (0, 0), "decoder": (-1, -1), "cross": (-1, 0)}


def call_scores(
    mechanism: Mechanism,
    q: Array,
    k: Array,
    mask: Mask = Full(),
    *,
    i: ArrayOrNumpy | None = None,
    j: ArrayOrNumpy | None = None,
    keep: Array | None = None,
    segment: Array | None = None,
    bias: Callable | None = None,
    **extra: Array,
) -> Float[Array, "T S"]:
    """Returns the attention scores of one call of a mechanism.

    For softmax attention these are its own scores. For any other mechanism they are those it would have as softmax:
    q·k/√K and the bias. A short convolution is applied to q and k first. Scores are −inf if the mask of the call
    forbids a pair. Pairs that a mechanism excludes by itself, as a window does, have their scores. Scores are NaN if a
    mechanism does not use keys.

    Args:
      mechanism: the mechanism.
      q: queries [T K].
      k: keys [S K].
      mask: the mask of the call.
      i: positions of the queries [T], as in `Mechanism.attend`.
      j: positions of the keys [S], as in `Mechanism.attend`.
      keep: False for padding [T], in causal attention over a whole sequence.
      segment: segment ids [T], in causal attention over a whole sequence.
      bias: function that is added to scores, or None.
      **extra: extra inputs of the mechanism.
    """
    q, k = jnp.asarray(q), jnp.asarray(k)
    T, S = q.shape[0], k.shape[0]
    sequence = initial_block(T, i, *arrays(keep, segment))
    if keep is None and segment is None:
        j = np.arange(S, dtype=np.int32) if j is None else j
        i = np.arange(S - T, S, dtype=np.int32) if i is None else i
        allowed = dense_mask(mask, i, j)
    else:
        # A sequence from its start, in which padding does not advance positions.
        i, j, allowed = sequence.i, sequence.i, sequence.pairs
    if isinstance(mechanism, ShortConvolution):
        q, k, extra = mechanism.convolved(q, k, sequence, extra)
        mechanism = mechanism.mechanism
    if isinstance(mechanism, Rotated):
        q, k = mechanism.position.rotate(q, k, sequence.positions, sequence.positions)
        mechanism = mechanism.mechanism
    if isinstance(mechanism, LocalP):
        mechanism = mechanism.within
    if isinstance(mechanism, PatternSoftmax):
        values = mechanism.scores(extra, bias)(q, k, i, j)
    elif isinstance(mechanism, Synthesizer):
        values = jnp.full((T, S), jnp.nan, jnp.result_type(float))
    else:
        if isinstance(mechanism, Linear) and isinstance(mechanism.feature, RotatedFeatures):
            # As softmax attention, it would rotate queries and keys instead of features.
            q, k = mechanism.feature.position.rotate(q, k, i, j)
        values = Scores(scaled_dot, {}, bias)(q, k, i, j)
    return jnp.where(allowed, values, -jnp.inf)


def scores(model: MappedModel, *inputs: Array) -> dict[str, Float[Array, "L H T S"] | None]:
    """Returns the scores of every attention for one example.

    Args:
      model: a model made by `config.create(key, shape)`.
      *inputs: inputs of the model, without a batch axis. Boolean inputs are padding masks.

    Returns:
      {name as in `attention_maps`: scores [L H T S]}, −inf for pairs that may not meet. None for an attention without
      maps.
    """
    masked, keeps = {}, [x for x in inputs if x.dtype == bool]
    for name, values in observations(call_scores, model, *inputs).items():
        if values is not None:
            sides = SIDES.get(name, (0, 0))
            rows, columns = (_kept(keeps, side, size) for side, size in zip(sides, values.shape[-2:], strict=True))
            values = jnp.where((rows[:, None] & columns[None, :])[None, None], values, -jnp.inf)
        masked[name] = values
    return masked


def _kept(keeps: list[Array], side: int, count: int) -> Bool[Array, " T"]:
    """Returns which of `count` positions are no padding.

    Without a mask all are kept. Positions prepended to the input are kept, too.
    """
    kept = keeps[side] if keeps else jnp.ones(count, bool)
    return jnp.concatenate([jnp.ones(count - kept.shape[0], bool), kept])


@jax.jit
def softmax(scores: Float[Array, "... T S"]) -> Float[Array, "... T S"]:
    """Returns the softmax map of scores [… T S]; zero in a row without any allowed pair."""
    rows = scores.reshape(-1, scores.shape[-1])
    return masked_softmax(rows, rows != -jnp.inf).reshape(scores.shape)
