"""Cross-entropy of the scores of a linear map, without holding all scores at once."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.varying import varying_like

AT_ONCE = 2**20  # scores that are held at a time: 4 MB in float32, so that they fit into a cache


class Entropy(NamedTuple):
    """The loss, with the entropy and correctness of every row."""

    loss: Float[Array, ""]
    """The weighted sum of the entropies, a scalar."""
    nats: Float[Array, " N"]
    """Cross-entropy of each row, in nats [N]."""
    right: Bool[Array, " N"]
    """Whether the target of each row has the largest score [N]. False if all symbols have the same score."""


def cross_entropy(
    x: Float[Array, "N D"],
    w: Float[Array, "D vocabulary"],
    b: Float[Array, " vocabulary"] | None,
    target: Int[Array, " N"],
    weights: Float[Array, " N"],
    smoothing: float = 0.0,
) -> Entropy:
    """Returns Σ_n share_n nats_n of the scores s = x w + b, where nats_n = log Σ exp s_n − s_n[target_n].

    Rows are processed some at a time. Each row's gradient is computed together with its loss, so that the scores need
    not be stored or recomputed. The residuals of the backward pass are as large as the gradients. Only the loss has a
    gradient, and only for x, w and b. Forward-mode differentiation is not supported.

    Args:
      x: inputs [N D].
      w: weights of the linear map [D vocabulary].
      b: bias [vocabulary], or None.
      target: index of the correct symbol of each row [N], below the size of the vocabulary.
      weights: weight of each row [N]. A row with weight 0 is replaced by zeros, so it need not be finite.
      smoothing: share of the target that is spread evenly over all symbols (Szegedy et al. 2016, section 7). Defaults
        to 0.

    Returns:
      An `Entropy`, in float32 at least.
    """
    # The gradient of an argument must vary like the argument, and it varies like all of them together.
    x, w, b = varying_like((x, w, b), (target, weights))
    return _entropy(x, w, b, target, weights, smoothing)


@partial(jax.custom_vjp, nondiff_argnums=(5,))
def _entropy(x, w, b, target, weights, smoothing) -> Entropy:
    return _sweep(x, w, b, target, weights, smoothing, slopes=False)[0]


def _forward(x, w, b, target, weights, smoothing):
    """The forward rule: the residuals are the gradients for a cotangent of one."""
    return _sweep(x, w, b, target, weights, smoothing, slopes=True)


def _backward(smoothing, slopes, given):
    """The backward rule: scales the saved gradients by the cotangent of the loss."""
    return *jax.tree.map(lambda slope: slope * given.loss.astype(slope.dtype), slopes), None, None


_entropy.defvjp(_forward, _backward)


def _sweep(x, w, b, target, weights, smoothing, slopes: bool) -> tuple[Entropy, tuple[Array | None, ...] | None]:
    """Returns the entropy and, if `slopes`, the gradients of its loss with respect to x, w and b."""
    (N, D), V, dtype = x.shape, w.shape[1], accumulation_dtype(x.dtype)
    blocks = max(1, min(N, -(-N * V // AT_ONCE)))
    rows = -(-N // blocks)
    # Row n goes into block n mod `blocks`. Each block thus has rows of all examples, on whichever device they are.
    each = lambda a: jnp.pad(a, [(0, rows * blocks - N), *[(0, 0)] * (a.ndim - 1)]).reshape(rows, blocks, *a.shape[1:])
    together = lambda a: jnp.moveaxis(a, 0, 1).reshape(rows * blocks, *a.shape[2:])[:N]
    weights = weights.astype(dtype)
    x = jnp.where((weights == 0)[:, None], jnp.zeros_like(x), x)
    apart = jax.tree.map(lambda a: jnp.moveaxis(each(a), 1, 0), (x, target, weights))
    matrix = w.astype(x.dtype)
    back = matrix.T if slopes else None

    def block(sums, here):
        x, target, weights = here
        s = matmul(x, matrix) if b is None else matmul(x, matrix) + b.astype(dtype)[None, :]
        picked = jnp.take_along_axis(s, target[:, None], axis=1)[:, 0]
        top = s.max(axis=1)
        powers = jnp.exp(s - top[:, None])
        total = powers.sum(axis=1)
        level = jnp.log(total) + top
        nats = level - picked
        if smoothing:
            nats = (1 - smoothing) * nats + smoothing * (level - s.mean(axis=1))
        # If all symbols have the same score, every power is 1 and the total is V. Such a row does not count as right.
        found = Entropy((weights * nats).sum(), nats, (picked >= top) & (total < V))
        if back is None:
            return sums, (found, None)
        own = jnp.arange(V, dtype=target.dtype)[None, :] == target[:, None]
        aim = jnp.where(own, 1 - smoothing + smoothing / V, smoothing / V).astype(dtype)
        slope = (powers * (weights / total)[:, None] - aim * weights[:, None]).astype(x.dtype)
        # The first factor of the product is transposed. So x comes first, which is smaller than the slope.
        dw = jax.lax.dot_general(x, slope, (((0,), (0,)), ((), ())), preferred_element_type=dtype)
        new = dw if b is None else (dw, slope.sum(axis=0, dtype=dtype))
        return jax.tree.map(jnp.add, sums, new), (found, matmul(slope, back).astype(x.dtype))

    start = jnp.zeros((D, V), dtype) if b is None else (jnp.zeros((D, V), dtype), jnp.zeros(V, dtype))
    sums = varying_like(start, (apart, w)) if slopes else None
    sums, (found, dx) = jax.lax.scan(block, sums, apart, unroll=blocks == 1)
    entropy = Entropy(found.loss.sum(), together(found.nats), together(found.right))
    if not slopes:
        return entropy, None
    dw, db = (sums, None) if b is None else (sums[0], sums[1].astype(b.dtype))
    return entropy, (together(dx), dw.astype(w.dtype), db)
