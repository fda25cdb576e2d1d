"""Problems of one sequence of which some tokens are to be foretold."""

from __future__ import annotations

from typing import Any

from attnlab.tasks.base.task import Batch, TextInterface
from attnlab.tasks.text.language_modeling import token_loss


class PredictionData(TextInterface):
    """Batches are {"tokens", "answers": [B T] int32, "asked": [B T] bool}: where asked, the answer is to be foretold.

    A model is called with tokens [T] and keep=None, for there is no padding, and answers scores [T vocabulary].
    """

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """Cross-entropy in nats, the mean over the places that ask; and {"accuracy"} there."""
        import jax.numpy as jnp

        asked = jnp.asarray(batch["asked"])
        loss, _, right = self._foretold(model, batch, key)
        return loss, {"accuracy": (right * asked).sum() / asked.sum().clip(1)}

    def _foretold(self, model: Any, batch: Batch, key: Any) -> tuple[Any, Any, Any]:
        """As `token_loss` says: the loss, and at every place [B T] what the answer costs, and whether it is right."""
        import jax
        import jax.numpy as jnp

        tokens, answers, asked = (jnp.asarray(batch[name]) for name in ("tokens", "answers", "asked"))
        keys = None if key is None else jax.random.split(key, len(tokens))

        def each(call):
            return jax.vmap(lambda tokens, key: call(tokens, None, key=key))(tokens, keys)

        return token_loss(model, each, answers, asked)
