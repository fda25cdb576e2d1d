"""Nyström attention."""

from dataclasses import dataclass
from typing import final

import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, moved
from attnlab.mechanisms.whole import Whole
from attnlab.ops import nystrom
from attnlab.ops.counts import check_counts
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.score import scaled_dot
from attnlab.ops.softmax import masked_softmax


@final
@dataclass(frozen=True)
class Nystrom(Whole):
    """Softmax attention approximated through a few landmarks (Nyströmformer).

    y = softmax(q k̃ᵀ) softmax(q̃ k̃ᵀ)⁺ softmax(q̃ kᵀ) v, with scores divided by √K

    The landmarks q̃ and k̃ are means over segments of successive queries and of successive keys that the mask keeps. A
    `QueryPadding` mask marks queries that are padding. The pseudo-inverse is the paper's iteration (eq. 11). If there
    are no more kept queries, or no more kept keys, than landmarks, one outer factor is the softmax map already and the
    other two cancel. That map is then used. The paper's depthwise convolution of v is a skip connection and is left
    out.

    Weights may be negative. The output of a query depends on the other queries. Time is O((T+S)·landmarks·(K+V)). This
    mechanism cannot decode.

    Raises:
        ValueError: if `landmarks` or `steps` is below 1.
        NotImplementedError: if the mask is not a product of kept queries and kept keys.

    Source: Xiong et al. 2021, eq. 13-14.
    """

    landmarks: int = 64
    """Number of landmark queries and of landmark keys."""
    steps: int = 6
    """Number of iterations for the pseudo-inverse."""
    traits = Traits(decodes=False, rotary=True, row_independent=False, position_dependent=True)

    def __post_init__(self):
        check_counts(landmarks=self.landmarks, steps=self.steps)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None):
        """Attends through the landmarks, or directly if there are no more queries or keys than landmarks."""
        if (factors := mask.factors(i, j)) is None:
            raise NotImplementedError(f"{self} does not support {mask}: a landmark combines many tokens")
        rows, columns = factors
        q, k, values = (x.astype(accumulation_dtype(x.dtype)) for x in (q, k, v))
        if min(q.shape[0], k.shape[0]) <= self.landmarks:
            return matmul(_softmax(q, k, columns), values).astype(v.dtype)
        of_q, of_k = nystrom.segments(rows, i, self.landmarks), nystrom.segments(columns, j, self.landmarks)
        return self._through(q, k, values, of_q, of_k).astype(v.dtype)

    def _through(self, q, k, v, of_q, of_k):
        """Returns the output [T V], given the segment of each query and of each key."""
        m = self.landmarks
        order = jnp.arange(m, dtype=jnp.int32)
        middle_q, middle_k = nystrom.means(q, of_q, m), nystrom.means(k, of_k, m)
        queries, keys = order <= jnp.max(of_q), order <= jnp.max(of_k)
        inner = jnp.where(queries[:, None], _softmax(middle_q, middle_k, keys), 0)
        read = matmul(_softmax(middle_q, k, of_k >= 0), v)
        # With no more tokens than segments, the landmarks are the tokens themselves.
        few_q, few_k = (jnp.sum(of >= 0) <= m for of in (of_q, of_k))
        held = jnp.where(few_k, nystrom.means(v, of_k, m), matmul(nystrom.pseudo_inverse(inner, self.steps), read))
        return jnp.where(few_q, read[of_q], matmul(_softmax(q, middle_k, keys), held))

    def cost(self, T, S, K, V, block=None):
        """Counts the means, the three maps, the products with v and the iteration.

        If there are no more queries or keys than landmarks, it counts softmax attention.
        """
        m = self.landmarks
        pairs = (T + S) * m * (4 * K + 2 * V + 6) + m * m * (2 * K + 2 * V + 5) + m * S * 2 * V + self.steps * 8 * m**3
        return Cost(
            flops=T * S * (2 * K + 2 * V + 5) if min(T, S) <= m else pairs,
            bytes=moved(T, S, K, V),
            state_bytes=0,
        )


def _softmax(q, k, visible):
    """Returns the softmax map of q over the keys that are visible."""
    return masked_softmax(scaled_dot(q, k), jnp.broadcast_to(visible[None, :], (q.shape[0], k.shape[0])))
