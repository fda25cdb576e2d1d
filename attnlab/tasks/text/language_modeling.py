"""What it costs a model to foretell symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Each = Callable[[Callable], Any]


def token_loss(model: Any, each: Each, answers: Any, asked: Any, smoothing: float = 0.0) -> tuple[Any, Any, Any]:
    """The mean over the places asked, smoothed; at every place the cost in nats, and whether it is right, 0 or 1.

    `answers` and `asked` are [B T], what comes is (a number, [B T], [B T]). `each(call)` is what `call`, the model or a
    part of it, makes of every example. Of a model that has `hidden_states` and `token_loss`
    (`attnlab.models.output_head.OutputHead`) the scores are never held all at once: they would be the most of what a
    step holds. `smoothing` is the share of the target that all symbols have alike. Right is a score that none is
    above, where not all are alike.
    """
    import jax
    import jax.numpy as jnp
    import optax

    count = jnp.maximum(asked.sum(), 1)
    if hasattr(model, "token_loss"):
        x = each(model.hidden_states)
        share = (asked / count).reshape(-1)
        loss, nats, right = model.token_loss(x.reshape(share.size, -1), answers.reshape(-1), share, smoothing)
        return loss, nats.reshape(answers.shape), right.reshape(answers.shape).astype(nats.dtype)
    scores = each(model)
    # Sums of half-precision exponentials lose the tail.
    scores = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
    nats = optax.softmax_cross_entropy_with_integer_labels(scores, answers)
    if smoothing:
        # The cross-entropy of a uniform target is the mean over symbols of that of each.
        uniform = jax.nn.logsumexp(scores, axis=-1) - scores.mean(axis=-1)
        nats = (1 - smoothing) * nats + smoothing * uniform
    picked = jnp.take_along_axis(scores, answers[..., None], axis=-1)[..., 0]
    right = (picked >= scores.max(axis=-1)) & (picked > scores.min(axis=-1))
    return jnp.where(asked, nats, 0).sum() / count, nats, right.astype(nats.dtype)
