"""Texts asked of a model of pairs, and its answers as texts: what needs none of the data it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlab.data import parallel
from attnlab.data.batches import pad
from attnlab.data.example import Example, Symbols
from attnlab.data.files import DataError
from attnlab.data.parallel import Corpus
from attnlab.data.units import Codec, from_json
from attnlab.data.vocabulary import BEGIN, END, PAD
from attnlab.tasks.base import Batch, Interpreter, Pairs, Task
from attnlab.tasks.foretelling import foretold

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
        loss, _, right, keep = _forced(model, batch, key, self.smoothing)
        return loss, {"token_accuracy": (right * keep).sum() / keep.sum().clip(1)}

    def answer(self, model: Any, batch: Batch, decoder: Any = None) -> Batch:
        """{"tokens": [B T]} int32: the best answer of a decoder of `attnlab.decoding`; greedily where None.

        Besides {"nats": [B]}, what the first references cost, where their likelihood is asked for.
        """
        found = {"tokens": self.answers(model, batch, decoder)["tokens"][:, 0]}
        if self.likelihood:
            _, nats, _, keep = _forced(model, batch, None)
            found["nats"] = (nats * keep).sum(axis=1)
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

    def asked(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """The examples of a file that is scored, where in it each stands, and notes of how it was read."""
        examples, places, notes = from_corpus(parallel.asked(file))
        # As a person types them, and not as the data set has them.
        read = self.how.get("read", str.strip)
        return [example._replace(source=read(str(example.source))) for example in examples], places, notes

    def with_test(self, problem: Any, file: str) -> Any:
        """The problem with the pairs of a file, or its sources alone, as its test."""
        examples, places, notes = self.asked(file)
        found = problem.with_test(examples, file, places)
        found.notes = (*notes, *found.notes)
        return found

    def interpreter(self, vocabulary: dict[str, Any], where: str) -> Pairing:
        """A `Pairing` of the vocabulary."""
        return Pairing.restored(vocabulary, where, **self.how)


def from_corpus(corpus: Corpus) -> tuple[list[Example], list[str], list[str]]:
    """What `PairTask.asked` returns, of a file of lines."""
    return corpus.examples, [f"line {number}" for number in corpus.lines], corpus.notes()


def written(symbols: Symbols) -> str:
    """A side of an example as text: as it is, or its symbols with a space between them."""
    return symbols if isinstance(symbols, str) else " ".join(symbols)


def _numbers(value: object) -> list[int]:
    """A list of whole numbers above 0; nothing for what is none."""
    return value if isinstance(value, list) and all(isinstance(n, int) and n > 0 for n in value) else []


def _forced(model: Any, batch: Batch, key: Any, smoothing: float = 0.0) -> tuple[Any, Any, Any, Any]:
    """Of the target symbols, each given those before it, what `foretold` says; and which are no padding."""
    import jax
    import jax.numpy as jnp

    source, target = jnp.asarray(batch["source"]), jnp.asarray(batch["target"])
    given = jnp.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BEGIN)
    keys = None if key is None else jax.random.split(key, len(source))

    keep = target != PAD

    def each(call):
        one = lambda source, given, keep, key: call(source, given, source != PAD, keep, key=key)
        return jax.vmap(one)(source, given, keep, keys)

    return *foretold(model, each, target, keep, smoothing), keep
