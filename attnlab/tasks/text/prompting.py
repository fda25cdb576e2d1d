"""The interface to inputs and answers of language models. It needs none of the training data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.text.tokenizer import normalize
from attnlab.data.text.units import Tokenizer, from_json
from attnlab.data.text.vocabulary import BEGIN, END, PAD
from attnlab.tasks.base.example import ModelExample
from attnlab.tasks.base.models import ContinuationModel
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.base.text_interface import Batch, ContinuedInterface
from attnlab.tasks.base.token_prediction import MarkedPrediction

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray, PyTree

    from attnlab.decoding import Search


class PromptInterface(MarkedPrediction, ContinuedInterface):
    """The interface of a language model that continues a text.

    Args:
        tokenizer: The tokenizer of the text.
        length: The number of symbols of a block, which the model can read at once.
    """

    shape: Tokens

    def __init__(self, tokenizer: Tokenizer, length: int):
        self.tokenizer, self.shape = tokenizer, Tokens(tokenizer.vocabulary.size, length)

    @classmethod
    def restored(cls, vocabulary: dict[str, object], where: str) -> PromptInterface:
        """Returns the interface of a stored vocabulary.

        Args:
            vocabulary: The result of the property `vocabulary`.
            where: The name of the vocabulary's file, with which error messages begin.

        Raises:
            DataError: If the vocabulary is not one of a language model.
        """
        length = vocabulary.get("length")
        if not isinstance(length, int) or length < 1:
            raise DataError(f"{where}: length={length!r} must be a whole number of at least 1")
        return cls(from_json(vocabulary.get("text"), f"{where}: text"), length)

    @property
    def vocabulary(self) -> dict[str, object]:
        """The vocabulary, as {"text": tokenizer with its symbols, "length": of a block}."""
        return {"text": self.tokenizer.to_json(), "length": self.shape.length}

    @property
    def reads(self) -> int:
        """The largest number of symbols of a prompt that are read. Half of a block is left for the continuation."""
        return max(1, self.shape.length // 2)

    @property
    def decoder(self) -> Search:
        """The default decoder: sampling at temperature 0.8. The most probable text would repeat itself."""
        from attnlab.decoding import Sample

        return Sample(temperature=0.8)

    def answer(self, model: PyTree, batch: Batch) -> Batch:
        """Returns {"nats", "right": [B T]}: the cost of each symbol, and whether it was the most probable one.

        Both are 0 at positions that are not scored.
        """
        import jax.numpy as jnp

        losses = self.token_losses(model, batch, None)
        zero_elsewhere = lambda x: jnp.where(losses.scored, x, 0)
        return {"nats": zero_elsewhere(losses.nats), "right": zero_elsewhere(losses.correct)}

    def answers(
        self, model: ContinuationModel, batch: Batch, decoder: Search | None = None, keys: PRNGKeyArray | None = None
    ) -> Batch:
        """Returns N continuations of each prompt as {"tokens": [B N T], "scores": [B N]}, the best first.

        Prompt and continuation together have one symbol more than a block. Only the last `reads` symbols of a prompt
        are read.

        Args:
            model: The model.
            batch: {"source": [B P]}, the prompts.
            decoder: The decoder. None uses the default.
            keys: The keys for sampling, one for each prompt [B], or None.
        """
        import jax
        import jax.numpy as jnp

        from attnlab.decoding import DecodeProblem

        search, length = decoder or self.decoder, self.shape.length
        source = jnp.asarray(batch["source"])[:, -self.reads :]

        def one(prompt, key):
            def step(state, token):
                # Decoding begins with BEGIN, which stands for the last symbol of the prompt. END is excluded, because
                # a text has no end mark.
                scores, state = model.step(state, jnp.where(token == BEGIN, prompt[-1], token))
                return scores.at[END].set(-jnp.inf), state

            state, _ = jax.lax.scan(lambda s, token: (model.step(s, token)[1], None), model.start(length), prompt[:-1])
            return search.search(DecodeProblem(step, state, BEGIN, END, length - len(prompt) + 1, PAD), key)

        return jax.vmap(one)(source, keys)._asdict()

    def example(self, batch: Batch, answer: Batch | None = None) -> ModelExample:
        """Returns a block, or the end of a prompt that fits into a block."""
        tokens = batch["tokens"] if "tokens" in batch else batch["source"][:, -self.shape.length :]
        return super().example({"tokens": tokens})

    def encode_prompt(self, text: str) -> Batch:
        """Returns the prompt as {"source": [1 P]}.

        Raises:
            DataError: If the text is empty, or has symbols that never occur in training.
        """
        ids = self.tokenizer.encode(normal(text), within=True)
        if not ids:
            raise DataError(f"the input {text!r} is empty; expected the beginning of a text")
        return {"source": np.array([ids], np.int32)}

    def format_answer(self, answer: Batch) -> str:
        """Returns the continuation, without the prompt."""
        return self.tokenizer.decode(np.asarray(answer["tokens"])[0].tolist(), within=True)

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the symbols of row 0."""
        rows = {name: np.asarray(batch[name])[0].tolist() for name in ("source", "target") if name in batch}
        return {name: list(self.tokenizer.vocabulary.decode(row)) for name, row in rows.items()}


def normal(text: str) -> str:
    """Returns the text in NFC with "\\n" as line end, so that all units read the same characters."""
    return normalize(text.replace("\r\n", "\n").replace("\r", "\n"))
