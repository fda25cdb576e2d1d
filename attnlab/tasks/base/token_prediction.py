"""Tasks whose model predicts tokens, and their loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from attnlab.tasks.base.example import ModelExample, TaskMaps
from attnlab.tasks.base.text_interface import Batch, TextInterface

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


@runtime_checkable
class TokenModel(Protocol):
    """A model that computes the loss of predicted tokens itself, as `attnlab.models.output_head.OutputHead` does."""

    def hidden_states(self, *inputs: Array | None) -> tuple[Float[Array, "T D"], object]:
        """Returns the hidden states of one example, from which tokens are predicted, and the attention maps.

        The last input is the key for dropout, or None.
        """
        ...

    def token_loss(
        self, x: Float[Array, "N D"], target: Int[Array, " N"], weights: Float[Array, " N"], smoothing: float
    ) -> tuple[Float[Array, ""], Float[Array, " N"], Bool[Array, " N"]]:
        """Returns the loss, the cost of each target in nats, and whether each prediction is correct."""
        ...


class TargetTokens(NamedTuple):
    """The inputs of a model for a batch, and the tokens that it should predict."""

    inputs: tuple[Array | None, ...]
    """Inputs of the model without the key, each with a leading axis of examples, or None."""
    answers: Int[Array, "B T"]
    """The correct token at each position."""
    scored: Bool[Array, "B T"]
    """Which positions count."""


class TokenLosses(NamedTuple):
    """The cross-entropy of predicted tokens.

    A prediction is correct if no logit is higher than that of the answer, and if the logits are not all equal.
    """

    loss: Float[Array, ""]
    """The smoothed mean over the scored positions, in nats."""
    nats: Float[Array, "B T"]
    """The cost at each position."""
    correct: Float[Array, "B T"]
    """1 where the prediction is correct, else 0."""
    scored: Bool[Array, "B T"]
    """Which positions count."""

    @property
    def accuracy(self) -> Float[Array, ""]:
        """The fraction of correct predictions among the scored positions."""
        return (self.correct * self.scored).sum() / self.scored.sum().clip(1)


class TokenPrediction(TextInterface):
    """The loss of a model that predicts tokens."""

    smoothing: float = 0.0
    """The fraction of the target that is uniform over all tokens (Szegedy et al. 2016, section 7)."""
    accuracy_name: str = "accuracy"
    """The name under which `loss` reports the fraction of correct predictions."""

    @abstractmethod
    def targets(self, batch: Batch) -> TargetTokens:
        """Returns the inputs of the model for a batch, and the tokens that it should predict."""

    def loss(
        self, model: TokenModel | Callable[..., Array], batch: Batch, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Computes the smoothed cross-entropy in nats.

        Returns:
            The mean over the scored positions, and the accuracy at them.
        """
        losses = self.token_losses(model, batch, key, self.smoothing)
        return losses.loss, {self.accuracy_name: losses.accuracy}

    def token_losses(
        self,
        model: TokenModel | Callable[..., Array],
        batch: Batch,
        key: PRNGKeyArray | None,
        smoothing: float = 0.0,
    ) -> TokenLosses:
        """Computes the cross-entropy at every position.

        A `TokenModel` computes it from its hidden states, so that the logits of all tokens are never held in memory at
        once. They would be the largest array of a training step. Any other model returns the logits of one example,
        `model(*inputs, key=key)`.
        """
        import jax

        inputs, answers, scored = self.targets(batch)
        keys = None if key is None else jax.random.split(key, len(answers))
        if not isinstance(model, TokenModel):
            logits = jax.vmap(lambda inputs, key: model(*inputs, key=key))(inputs, keys)
            return losses_of_logits(logits, answers, scored, smoothing)
        x, _ = jax.vmap(model.hidden_states)(*inputs, keys)
        weights = (scored / scored.sum().clip(1)).reshape(-1)
        loss, nats, correct = model.token_loss(x.reshape(weights.size, -1), answers.reshape(-1), weights, smoothing)
        nats = nats.reshape(answers.shape)
        return TokenLosses(loss, nats, correct.reshape(answers.shape).astype(nats.dtype), scored)


class MarkedPrediction(TokenPrediction):
    """The loss of a model that predicts tokens of one sequence.

    Batches are {"tokens", "answers": [B T] int32, "scored": [B T] bool}. The model should predict `answers` where
    `scored` is true. It is called with tokens [T] and keep=None, because there is no padding.
    """

    maps = TaskMaps("decoder", "decoder")

    def targets(self, batch: Batch) -> TargetTokens:
        """See `TokenPrediction.targets`."""
        import jax.numpy as jnp

        tokens, answers, scored = (jnp.asarray(batch[name]) for name in ("tokens", "answers", "scored"))
        return TargetTokens((tokens, None), answers, scored)

    def model_inputs(self, batch: Batch) -> tuple[np.ndarray | Array, ...]:
        """Returns the tokens, none of which is padding."""
        tokens = np.asarray(batch["tokens"], np.int32)
        return tokens, np.ones(tokens.shape, bool)

    def example(self, batch: Batch, answer: Batch | None = None) -> ModelExample:
        """Returns the sequence, with its symbols along both axes."""
        words = self.tokens({**batch, "source": batch["tokens"]})["source"]
        return ModelExample(tuple(x[0] for x in self.model_inputs(batch)), {"decoder": (words, words)})


def losses_of_logits(
    logits: Float[Array, "B T V"], answers: Int[Array, "B T"], scored: Bool[Array, "B T"], smoothing: float = 0.0
) -> TokenLosses:
    """Computes the cross-entropy from logits.

    Args:
        logits: The logits, [B T V].
        answers: The correct token at each position, [B T].
        scored: Which positions count, [B T].
        smoothing: The fraction of the target that is uniform over all tokens. Defaults to 0.

    Returns:
        The losses, in at least float32. `loss` is 0 if no position counts.
    """
    import jax
    import jax.numpy as jnp
    import optax

    # In half precision, the softmax's sum of exponentials loses small terms.
    logits = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    nats = optax.softmax_cross_entropy_with_integer_labels(logits, answers)
    if smoothing:
        # The cross-entropy with a uniform target is the mean of the cross-entropies with each token.
        uniform = jax.nn.logsumexp(logits, axis=-1) - logits.mean(axis=-1)
        nats = (1 - smoothing) * nats + smoothing * uniform
    picked = jnp.take_along_axis(logits, answers[..., None], axis=-1)[..., 0]
    correct = (picked >= logits.max(axis=-1)) & (picked > logits.min(axis=-1))
    loss = jnp.where(scored, nats, 0).sum() / scored.sum().clip(1)
    return TokenLosses(loss, nats, correct.astype(nats.dtype), scored)
