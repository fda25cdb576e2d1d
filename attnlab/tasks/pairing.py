"""Texts asked of a model of pairs, and its answers as texts: what needs none of the data it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlab.data.batches import pad
from attnlab.data.files import DataError
from attnlab.data.units import Codec, from_json
from attnlab.data.vocabulary import BEGIN, END, PAD
from attnlab.tasks.base import Batch, Interpreter, Pairs, Task

Line = Callable[[str], str]


class Pairing(Interpreter):
    """A source text is read by one codec, and a target written by another, learned by teacher forcing and decoded.

    `lengths` are the most tokens of a source and of a target, its end mark among them; `widths` [B] those that sources
    were padded to in training. `read` prepares what a person types, `write` an answer to be read by one. `smoothing` is
    the share of the target that all symbols have alike (Szegedy et al. 2016, section 7). With `likelihood`, answers
    also say how likely the references are.
    """

    decodes = True
    shape: Pairs

    def __init__(
        self,
        source: Codec,
        target: Codec,
        lengths: tuple[int, int],
        widths: Sequence[int],
        *,
        read: Line = str.strip,
        write: Line = str,
        smoothing: float = 0.0,
        likelihood: bool = False,
    ):
        self.source, self.target, self.widths = source, target, sorted(widths)
        self.read, self._write, self.smoothing, self.likelihood = read, write, smoothing, likelihood
        self.shape = Pairs(source.vocabulary.size, target.vocabulary.size, *lengths, joint=source == target)

    @classmethod
    def restored(cls, vocabulary: dict[str, Any], where: str, **how: Any) -> Pairing:
        """That of a `vocabulary`; DataError beginning with `where` for what is none. `how` is as `Pairing` takes it."""
        source, target = (from_json(vocabulary.get(side), f"{where}: {side}") for side in ("source", "target"))
        lengths, widths = (_numbers(vocabulary.get(name)) for name in ("lengths", "widths"))
        if len(lengths) != 2 or not widths:
            given = ", ".join(f"{name}={vocabulary.get(name)!r}" for name in ("lengths", "widths"))
            raise DataError(f"{where}: {given} must be two whole numbers, and one or more")
        return cls(source, target, (lengths[0], lengths[1]), widths, **how)

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"source": how it is read, "target": how it is written, with their symbols, "lengths", "widths"}."""
        codecs = {"source": self.source.to_json(), "target": self.target.to_json()}
        return codecs | {"lengths": [self.shape.source_length, self.shape.target_length], "widths": self.widths}

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """Cross-entropy in nats, smoothed, the mean over the targets' tokens; and {"token_accuracy"}."""
        import jax
        import jax.numpy as jnp

        logits, losses, target = _forced(model, batch, key)
        keep = target != PAD
        if self.smoothing:
            # The cross-entropy of a uniform target is the mean over symbols of that of each.
            uniform = jax.nn.logsumexp(logits, axis=-1) - logits.mean(axis=-1)
            losses = (1 - self.smoothing) * losses + self.smoothing * uniform
        # No symbol above the target, and not all alike: the greatest score is known from the loss, and to ask whose it
        # is would cost a fifth more.
        picked = jnp.take_along_axis(logits, target[..., None], axis=-1)[..., 0]
        right = (picked >= logits.max(axis=-1)) & (picked > logits.min(axis=-1))
        right = right.astype(losses.dtype)
        count = jnp.maximum(keep.sum(), 1).astype(losses.dtype)
        loss, accuracy = (jnp.where(keep, values, 0).sum() / count for values in (losses, right))
        return loss, {"token_accuracy": accuracy}

    def answer(self, model: Any, batch: Batch, decoder: Any = None) -> Batch:
        """{"tokens": [B T]} int32: the best answer of a decoder of `attnlab.decoding`; greedily where None.

        Besides {"nats": [B]}, what the first references cost, where their likelihood is asked for.
        """
        found = {"tokens": self.answers(model, batch, decoder)["tokens"][:, 0]}
        if self.likelihood:
            _, losses, target = _forced(model, batch, None)
            found["nats"] = (losses * (target != PAD)).sum(axis=1)
        return found

    def answers(self, model: Any, batch: Batch, decoder: Any = None, key: Any = None) -> Batch:
        """{"tokens": [B N T], "scores": [B N]}: the N answers of a decoder, the best first."""
        import jax
        import jax.numpy as jnp

        from attnlab.decoding import Greedy

        decode, length = decoder or Greedy(), self.shape.target_length
        source = jnp.asarray(batch["source"])
        keys = None if key is None else jax.random.split(key, len(source))

        def one(source, key):
            return decode(model.step, model.start(source, source != PAD, length), BEGIN, END, length, PAD, key)

        return jax.vmap(one)(source, keys)._asdict()

    def ask(self, text: str) -> Batch:
        """{"source": [1 S], "target": [1 T]}, the target all PAD. Raises DataError for more than the model reads."""
        ids = self.source.encode(self.read(text))
        if not ids:
            raise DataError(f"the input {text!r} is empty")
        if len(ids) > (room := self.shape.source_length):
            raise DataError(f"the input has {len(ids)} tokens, and the model was made for {room}")
        return {"source": pad([ids], room), "target": pad([[]], self.shape.target_length)}

    def tell(self, answer: Batch) -> str:
        """The first answer as text."""
        return self._write(self.target.decode(np.asarray(answer["tokens"])[0].tolist()))

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The symbols of row 0 without padding; the target's end mark is shown as "∎"."""
        target = np.asarray(batch["target"])[0].tolist()
        end = ["∎"] if END in target else []
        return {
            "source": list(self.source.vocabulary.decode(np.asarray(batch["source"])[0].tolist())),
            "target": [*self.target.vocabulary.decode(target), *end],
        }


class PairTask(Task):
    """A task of pairs of texts."""

    @property
    def how(self) -> dict[str, Any]:
        """What its problem and its interpreter are alike in, as `Pairing` takes it."""
        return {}

    def interpreter(self, vocabulary: dict[str, Any], where: str) -> Pairing:
        """A `Pairing` of the vocabulary."""
        return Pairing.restored(vocabulary, where, **self.how)


def _numbers(value: object) -> list[int]:
    """A list of whole numbers above 0; nothing for what is none."""
    return value if isinstance(value, list) and all(isinstance(n, int) and n > 0 for n in value) else []


def _forced(model: Any, batch: Batch, key: Any) -> tuple[Any, Any, Any]:
    """Of every target symbol, given those before it: all scores [B T V], its cross-entropy in nats; and the targets."""
    import jax
    import jax.numpy as jnp
    import optax

    source, target = jnp.asarray(batch["source"]), jnp.asarray(batch["target"])
    given = jnp.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BEGIN)
    keys = None if key is None else jax.random.split(key, len(source))

    def one(source, given, keep, key):
        return model(source, given, source_keep=source != PAD, target_keep=keep, key=key)

    logits = jax.vmap(one)(source, given, target != PAD, keys)
    # Sums of half-precision exponentials lose the tail.
    logits = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    return logits, optax.softmax_cross_entropy_with_integer_labels(logits, target), target
