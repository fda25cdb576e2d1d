"""Texts that a language model goes on with: what needs none of the data it was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.text.codec import normalize
from attnlab.data.text.units import Tokenizer, from_json
from attnlab.data.text.vocabulary import BEGIN, END, PAD
from attnlab.tasks.base.prediction import PredictionData
from attnlab.tasks.base.task import Batch, Tokens


class PromptInterface(PredictionData):
    """A text is read and gone on with by `codec`, in blocks of up to `length` symbols."""

    continues = True
    shape: Tokens

    def __init__(self, codec: Tokenizer, length: int):
        self.codec, self.shape = codec, Tokens(codec.vocabulary.size, length)

    @classmethod
    def restored(cls, vocabulary: dict[str, Any], where: str) -> PromptInterface:
        """That of a `vocabulary`; DataError beginning with `where` for what is none."""
        length = vocabulary.get("length")
        if not isinstance(length, int) or length < 1:
            raise DataError(f"{where}: length={length!r} must be a whole number of at least 1")
        return cls(from_json(vocabulary.get("text"), f"{where}: text"), length)

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"text": how it is read and written, with its symbols, "length": of a block}."""
        return {"text": self.codec.to_json(), "length": self.shape.length}

    @property
    def reads(self) -> int:
        """How many symbols of a beginning are read, at most: half a block leaves the other half to the answer."""
        return max(1, self.shape.length // 2)

    @property
    def decoder(self) -> Any:
        """Draws, a little bolder than the model is: its likeliest text goes in circles."""
        from attnlab.decoding import Sample

        return Sample(temperature=0.8)

    def answer(self, model: Any, batch: Batch) -> Batch:
        """{"nats", "right": [B T]}: what each symbol asked for costs, and whether it was the likeliest; 0 elsewhere."""
        import jax.numpy as jnp

        _, nats, right = self._foretold(model, batch, None)
        asked = jnp.asarray(batch["asked"])
        return {"nats": jnp.where(asked, nats, 0), "right": jnp.where(asked, right, 0)}

    def answers(self, model: Any, batch: Batch, decoder: Any = None, key: Any = None) -> Batch:
        """{"tokens": [B N T], "scores": [B N]}: N ways to go on with each of {"source": [B P]}, the best first.

        Prompt and answer together are a block and its next symbol; of a prompt longer than `reads` the end is read.
        """
        import jax
        import jax.numpy as jnp

        decode, length = decoder or self.decoder, self.shape.length
        source = jnp.asarray(batch["source"])[:, -self.reads :]
        keys = None if key is None else jax.random.split(key, len(source))

        def one(prompt, key):
            def step(state, token):
                # What decoding begins with is the end of the prompt; a text has no end of its own.
                scores, state = model.step(state, jnp.where(token == BEGIN, prompt[-1], token))
                return scores.at[END].set(-jnp.inf), state

            state, _ = jax.lax.scan(lambda s, token: (model.step(s, token)[1], None), model.start(length), prompt[:-1])
            return decode(step, state, BEGIN, END, length - len(prompt) + 1, PAD, key)

        return jax.vmap(one)(source, keys)._asdict()

    def encode_prompt(self, text: str) -> Batch:
        """{"source": [1 P]}: what is gone on with. Raises DataError where it is empty, or has symbols never seen."""
        ids = self.codec.encode(normal(text), within=True)
        if not ids:
            raise DataError(f"the input {text!r} is empty: give the beginning of a text")
        return {"source": np.array([ids], np.int32)}

    def format_answer(self, answer: Batch) -> str:
        """What comes after the beginning."""
        return self.codec.decode(np.asarray(answer["tokens"])[0].tolist(), within=True)

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The symbols of row 0."""
        rows = {name: np.asarray(batch[name])[0].tolist() for name in ("source", "target") if name in batch}
        return {name: list(self.codec.vocabulary.decode(row)) for name, row in rows.items()}


def normal(text: str) -> str:
    """The text in NFC, with lines that end as "\\n", whatever they ended with: of all units the same characters."""
    return normalize(text.replace("\r\n", "\n").replace("\r", "\n"))
