"""Texts asked of a model of pairs, and its answers as texts: what needs none of the data it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from attnlab.data import names, parallel
from attnlab.data.batches import pad
from attnlab.data.example import Example, Symbols
from attnlab.data.files import DataError
from attnlab.data.marks import DEFAULT, SHOWN, SOURCE_MARKS, mark_count, marked
from attnlab.data.parallel import Corpus, Limit
from attnlab.data.units import Codec, from_json
from attnlab.data.vocabulary import BEGIN, END, PAD
from attnlab.tasks.base import Batch, Interpreter, Pairs, Task
from attnlab.tasks.foretelling import foretold

Line = Callable[[str], str]


class Pairing(Interpreter):
    """A source text is read by one codec, and a target written by another, learned by teacher forcing and decoded.

    `lengths` are the most tokens of a source and of a target, their marks among them; `widths` [B] those that sources
    were padded to in training. `source_marks` says which marks sources have (`attnlab.data.marks`). `read` prepares
    what a person types, `write` an answer to be read by one. `smoothing` is the share of the target that all symbols
    have alike (Szegedy et al. 2016, section 7). With `likelihood`, answers also say how likely the references are.
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
        source_marks: str = DEFAULT,
        read: Line = str.strip,
        write: Line = str,
        smoothing: float = 0.0,
        likelihood: bool = False,
    ):
        names.check("source_marks", source_marks, SOURCE_MARKS)
        self.source, self.target, self.widths, self.source_marks = source, target, sorted(widths), source_marks
        self.read, self._write, self.smoothing, self.likelihood = read, write, smoothing, likelihood
        self.shape = Pairs(source.vocabulary.size, target.vocabulary.size, *lengths, joint=source == target)

    @classmethod
    def restored(cls, vocabulary: dict[str, Any], where: str, **how: Any) -> Pairing:
        """That of a `vocabulary`; DataError beginning with `where` for what is none. `how` is as `Pairing` takes it.

        A vocabulary without `source_marks` is that of sources without marks, as they were before the field existed.
        """
        source, target = (from_json(vocabulary.get(side), f"{where}: {side}") for side in ("source", "target"))
        lengths, widths = (_numbers(vocabulary.get(name)) for name in ("lengths", "widths"))
        if len(lengths) != 2 or not widths:
            given = ", ".join(f"{name}={vocabulary.get(name)!r}" for name in ("lengths", "widths"))
            raise DataError(f"{where}: {given} must be two whole numbers, and one or more")
        marks = vocabulary.get("source_marks", "none")
        if not isinstance(marks, str) or marks not in SOURCE_MARKS:
            raise DataError(f"{where}: source_marks={marks!r} must be one of {', '.join(SOURCE_MARKS)}")
        # The vocabulary decides: its ids are what the model was trained on.
        how["source_marks"] = marks
        return cls(source, target, (lengths[0], lengths[1]), widths, **how)

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"source": how it is read, "target": how it is written, with their symbols, "lengths", "widths"}.

        And "source_marks", where sources have marks.
        """
        codecs = {"source": self.source.to_json(), "target": self.target.to_json()}
        marks = {} if self.source_marks == "none" else {"source_marks": self.source_marks}
        lengths = [self.shape.source_length, self.shape.target_length]
        return codecs | {"lengths": lengths, "widths": self.widths} | marks

    @property
    def source_room(self) -> int:
        """The most tokens of a source, without its marks."""
        return self.shape.source_length - mark_count(self.source_marks)

    def marked(self, ids: Iterable[int]) -> list[int]:
        """The ids of a source with its marks, as a model reads them."""
        return marked(ids, self.source_marks)

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
        if len(ids) > (room := self.source_room):
            raise DataError(f"the input has {len(ids)} tokens, and the model was made for {room}")
        source = pad([self.marked(ids)], self.shape.source_length)
        return {"source": source, "target": pad([[]], self.shape.target_length)}

    def tell(self, answer: Batch) -> str:
        """The first answer as text."""
        return self._write(self.target.decode(np.asarray(answer["tokens"])[0].tolist()))

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The symbols of row 0 without padding; a begin mark is shown as "⊢", an end mark as "∎"."""
        source, target = (np.asarray(batch[side])[0].tolist() for side in ("source", "target"))
        end = [SHOWN[END]] if END in target else []
        return {
            "source": [SHOWN.get(n) or self.source.vocabulary.decode([n])[0] for n in source if n != PAD],
            "target": [*self.target.vocabulary.decode(target), *end],
        }


@dataclass(frozen=True)
class PairTask(Task):
    """A task of pairs of texts.

    `source_marks` says which marks every source has: "end" after its last symbol, "begin" before its first, "both" or
    "none". Without an end mark, softmax attention cannot see that nothing follows the last symbol. `empty` says what
    becomes of lines of your own files that have one empty side: "refuse" or "skip".
    """

    teaching = ("source_marks", "empty")
    missing_values: ClassVar = {"source_marks": "none"}

    source_marks: Literal["end", "begin", "both", "none"] = field(default=DEFAULT, kw_only=True)
    empty: Literal["refuse", "skip"] = field(default="refuse", kw_only=True)

    def __post_init__(self):
        names.check("task.source_marks", self.source_marks, SOURCE_MARKS)
        names.check("task.empty", self.empty, parallel.EMPTY)

    @property
    def how(self) -> dict[str, Any]:
        """What its problem and its interpreter are alike in, as `Pairing` takes it: `load` passes it on."""
        return {"source_marks": self.source_marks}

    def asked(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """The examples of a file that is scored, where in it each stands, and notes of how it was read."""
        examples, places, notes = from_corpus(parallel.asked(file, Limit(empty=self.empty)))
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


def halves(empty: str) -> list[int] | None:
    """Where a reader of lines puts the numbers of those with one empty side; None where they are refused."""
    return [] if empty == "skip" else None


def left_out(half: Mapping[str, list[int] | None]) -> list[str]:
    """A note for each file of which lines with one empty side were left out."""
    return [note for path, numbers in half.items() for note in parallel.skipped(path, numbers or [])]


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
