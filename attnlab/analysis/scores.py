"""The scores of a trained model's attentions: what their softmax is of, or would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attnlab.analysis.maps import watched
from attnlab.mechanisms import Linear, ShortConvolution, Softmax, Watched
from attnlab.mechanisms.inputs import arrays
from attnlab.mechanisms.position_state import dense_mask, initial_block
from attnlab.mechanisms.synthesizer import Synthesizer
from attnlab.mechanisms.window import LocalP
from attnlab.ops.feature import RotatedFeatures
from attnlab.ops.mask import Full, Mask
from attnlab.ops.score import Scores, scaled_dot
from attnlab.ops.softmax import masked_softmax

# Of each attention, which of a model's inputs that are truth values say what rows and what columns are no padding.
SIDES = {"encoder": (0, 0), "decoder": (-1, -1), "cross": (-1, 0)}


@dataclass(frozen=True)
class Scored(Watched):
    """`mechanism`, of which one sees the scores in the place of the map: to look at them inside a model, swap this in.

    Of softmax attention they are its own; of any other, those it would have as softmax: q·k/√K, and the bias; behind
    a short convolution, of what that makes of q and k. −inf where the mask of the call forbids a pair; what a mechanism
    leaves out by itself, as a window does, is there. NaN where it asks no keys.
    """

    def look(self, q, k, mask: Mask = Full(), *, i=None, j=None, keep=None, segment=None, bias=None, **extra):
        """The scores [T S] of the call."""
        q, k, mechanism = jnp.asarray(q), jnp.asarray(k), self.mechanism
        T, S = q.shape[0], k.shape[0]
        if keep is None and segment is None:
            j = np.arange(S, dtype=np.int32) if j is None else j
            i = np.arange(S - T, S, dtype=np.int32) if i is None else i
            allowed = dense_mask(mask, i, j)
        else:
            # A sequence from its beginning, in which padding takes no position.
            block = initial_block(T, i, *arrays(keep, segment))
            i, j, allowed = block.i, block.i, block.pairs
        if isinstance(mechanism, ShortConvolution):
            q, k, extra = mechanism.before(q, k, initial_block(T, i, *arrays(keep, segment)), extra)
            mechanism = mechanism.mechanism
        if isinstance(mechanism, LocalP):
            mechanism = mechanism.within
        if isinstance(mechanism, Softmax):
            found = Scores(mechanism.score, {name: extra[name] for name in mechanism.learned}, bias)(q, k, i, j)
        elif isinstance(mechanism, Synthesizer):
            found = jnp.full((T, S), jnp.nan, jnp.result_type(float))
        else:
            if isinstance(mechanism, Linear) and isinstance(mechanism.feature, RotatedFeatures):
                # As softmax it would have queries and keys turned.
                q, k = mechanism.feature.position.rotate(q, k, i, j)
            found = Scores(scaled_dot, {}, bias)(q, k, i, j)
        return jnp.where(allowed, found, -jnp.inf)


def scored(config: Any, model: Any, shape: Any) -> Any:
    """`model`, made by `config.create(key, shape)`, with each mechanism `Scored`: same numbers."""
    return watched(config, model, shape, Scored)


def scores(config: Any, model: Any, shape: Any, *inputs: Array) -> dict[str, Float[Array, "L H T S"] | None]:
    """The scores of every attention in one example, by name as `maps`; −inf for pairs that may not meet."""
    return look(scored(config, model, shape), *inputs)


@jax.jit
def look(model: Any, *inputs: Array) -> dict[str, Any]:
    """What a `scored` model sees in one example; padding, which inputs that are truth values tell, meets nothing."""
    found, keeps = {}, [x for x in inputs if x.dtype == bool]
    for name, seen in model.look(*inputs)[1].items():
        if seen is not None:
            sides = SIDES.get(name, (0, 0))
            rows, columns = (_kept(keeps, side, size) for side, size in zip(sides, seen.shape[-2:], strict=True))
            seen = jnp.where((rows[:, None] & columns[None, :])[None, None], seen, -jnp.inf)
        found[name] = seen
    return found


def _kept(keeps: list[Array], side: int, count: int) -> Bool[Array, " T"]:
    """Which of so many positions are no padding: all, where nothing says so; one in front of them is none."""
    kept = keeps[side] if keeps else jnp.ones(count, bool)
    return jnp.concatenate([jnp.ones(count - kept.shape[0], bool), kept])


@jax.jit
def softmax(scores: Float[Array, "... T S"]) -> Float[Array, "... T S"]:
    """The softmax map of scores; zero in a row where no pair may meet."""
    rows = scores.reshape(-1, scores.shape[-1])
    return masked_softmax(rows, rows != -jnp.inf).reshape(scores.shape)
