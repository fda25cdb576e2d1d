"""Problems of one sequence of which some tokens are to be foretold."""

from __future__ import annotations

from typing import Any

from attnlab.tasks.base import Batch, Interpreter


class Prediction(Interpreter):
    """Batches are {"tokens", "answers": [B T] int32, "asked": [B T] bool}: where asked, the answer is to be foretold.

    A model is called with tokens [T] and keep [T], and answers scores [T vocabulary].
    """

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """Cross-entropy in nats, the mean over the places that ask; and {"accuracy"} there."""
        import jax.numpy as jnp

        nats, right = self._foretold(model, batch, key)
        asked = jnp.asarray(batch["asked"])
        count = jnp.maximum(asked.sum(), 1).astype(nats.dtype)
        loss, accuracy = (jnp.where(asked, values, 0).sum() / count for values in (nats, right))
        return loss, {"accuracy": accuracy}

    def _foretold(self, model: Any, batch: Batch, key: Any) -> tuple[Any, Any]:
        """At every place the cross-entropy of the answer [B T], and whether it is the likeliest [B T], 0 or 1."""
        import jax
        import jax.numpy as jnp
        import optax

        tokens, answers = (jnp.asarray(batch[name]) for name in ("tokens", "answers"))
        keys = None if key is None else jax.random.split(key, len(tokens))
        logits = jax.vmap(lambda tokens, key: self._scores(model, tokens, key))(tokens, keys)
        nats = optax.softmax_cross_entropy_with_integer_labels(logits, answers)
        return nats, (jnp.argmax(logits, axis=-1) == answers).astype(nats.dtype)

    def _scores(self, model: Any, tokens: Any, key: Any) -> Any:
        import jax.numpy as jnp

        scores = model(tokens, jnp.ones(tokens.shape, bool), key=key)
        # Sums of half-precision exponentials lose the tail.
        return scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
