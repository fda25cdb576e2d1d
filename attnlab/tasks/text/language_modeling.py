"""The loss of predicting symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Each = Callable[[Callable], Any]


def token_loss(model: Any, each: Each, answers: Any, asked: Any, smoothing: float = 0.0) -> tuple[Any, Any, Any]:
    """Compute the cross-entropy of predicted symbols.

    If a model provides its hidden states and computes the loss from them (`attnlab.models.output_head.OutputHead`), the
    scores of all symbols are never held in memory at once. They would be the largest array of a training step.

    A prediction is correct if no score is higher than that of the answer, and if the scores are not all equal.

    Args:
        model: The model.
        each: `each(call)` applies `call`, the model or a method of it, to every example of the batch.
        answers: The correct symbols, [B T].
        asked: Which positions are scored, [B T].
        smoothing: The fraction of the target that is uniform over all symbols.

    Returns:
        (loss, nats, right). `loss` is the smoothed mean over the scored positions. `nats` [B T] is the cost at every
        position. `right` [B T] is 1 where the prediction is correct, else 0.
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
    # In half precision, the softmax's sum of exponentials loses small terms.
    scores = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
    nats = optax.softmax_cross_entropy_with_integer_labels(scores, answers)
    if smoothing:
        # The cross-entropy with a uniform target is the mean of the cross-entropies with each symbol.
        uniform = jax.nn.logsumexp(scores, axis=-1) - scores.mean(axis=-1)
        nats = (1 - smoothing) * nats + smoothing * uniform
    picked = jnp.take_along_axis(scores, answers[..., None], axis=-1)[..., 0]
    right = (picked >= scores.max(axis=-1)) & (picked > scores.min(axis=-1))
    return jnp.where(asked, nats, 0).sum() / count, nats, right.astype(nats.dtype)
