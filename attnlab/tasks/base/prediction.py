"""Tasks of one sequence in which some tokens are to be predicted."""

from __future__ import annotations

from typing import Any

from attnlab.tasks.base.task import Batch, TextInterface
from attnlab.tasks.text.language_modeling import token_loss


class PredictionData(TextInterface):
    """The loss of a model that predicts tokens of one sequence.

    Batches are {"tokens", "answers": [B T] int32, "asked": [B T] bool}. At positions where `asked` is true, the model
    is to predict `answers`.

    A model is called with tokens [T] and keep=None, because there is no padding. It returns scores [T vocabulary].
    """

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """Compute the cross-entropy in nats.

        Returns:
            The mean over the positions where `asked` is true, and {"accuracy"} over the same positions.
        """
        import jax.numpy as jnp

        asked = jnp.asarray(batch["asked"])
        loss, _, right = self._foretold(model, batch, key)
        return loss, {"accuracy": (right * asked).sum() / asked.sum().clip(1)}

    def _foretold(self, model: Any, batch: Batch, key: Any) -> tuple[Any, Any, Any]:
        """Returns the result of `token_loss`: the loss, and the cost and correctness at every position [B T]."""
        import jax
        import jax.numpy as jnp

        tokens, answers, asked = (jnp.asarray(batch[name]) for name in ("tokens", "answers", "asked"))
        keys = None if key is None else jax.random.split(key, len(tokens))

        def each(call):
            return jax.vmap(lambda tokens, key: call(tokens, None, key=key))(tokens, keys)

        return token_loss(model, each, answers, asked)
