"""The interface of models of text pairs to inputs and answers. It needs no training data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from attnlab.data import names
from attnlab.data.batches import pad
from attnlab.data.io.files import DataError
from attnlab.data.text.example import Symbols
from attnlab.data.text.marks import DEFAULT, SHOWN, SOURCE_MARKS, mark_count, marked
from attnlab.data.text.units import Tokenizer, from_json
from attnlab.data.text.vocabulary import BEGIN, END, PAD
from attnlab.tasks.base.example import ModelExample, TaskMaps
from attnlab.tasks.base.models import SequenceDecoder
from attnlab.tasks.base.shapes import Pairs
from attnlab.tasks.base.text_interface import Batch, DecodedInterface
from attnlab.tasks.base.token_prediction import TargetTokens, TokenPrediction

if TYPE_CHECKING:
    from jaxtyping import Array, PRNGKeyArray, PyTree

    from attnlab.decoding import Search


Line = Callable[[str], str]


class PairOptions(TypedDict, total=False):
    """The arguments of `PairInterface` that the data and the text interface of a task share."""

    source_marks: str
    read: Line
    write: Line
    smoothing: float
    likelihood: bool


class PairInterface(TokenPrediction, DecodedInterface):
    """The interface of a sequence-to-sequence model, trained by teacher forcing and decoded symbol by symbol.

    Args:
        source: The tokenizer of sources.
        target: The tokenizer of targets.
        lengths: The largest number of tokens of a source and of a target, including their marks.
        widths: The lengths to which sources were padded in training.
        source_marks: Which marks a source has, see `attnlab.data.text.marks`.
        read: Prepares an input of a user.
        write: Prepares an answer for a user.
        smoothing: The fraction of the target that is uniform over all symbols (Szegedy et al. 2016, section 7).
        likelihood: Whether answers include the cost of the first references.
    """

    decodes = True
    accuracy_name = "token_accuracy"
    shape: Pairs
    maps = TaskMaps("cross", "cross", answered=True, whole=True)

    def __init__(
        self,
        source: Tokenizer,
        target: Tokenizer,
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
    def restored(cls, vocabulary: dict[str, object], where: str, **how: Unpack[PairOptions]) -> PairInterface:
        """Returns the interface of a stored vocabulary.

        A vocabulary without `source_marks` was written before that field existed. Its sources have no marks.

        Args:
            vocabulary: The result of the property `vocabulary`.
            where: The name of the vocabulary's file, with which error messages begin.
            **how: Further arguments of `PairInterface`. `source_marks` is replaced by the vocabulary's value.

        Raises:
            DataError: If the vocabulary is not one of a sequence-to-sequence task.
        """
        source, target = (from_json(vocabulary.get(side), f"{where}: {side}") for side in ("source", "target"))
        lengths, widths = (_numbers(vocabulary.get(name)) for name in ("lengths", "widths"))
        if len(lengths) != 2 or not widths:
            given = ", ".join(f"{name}={vocabulary.get(name)!r}" for name in ("lengths", "widths"))
            raise DataError(f"{where}: expected two positive lengths and one or more positive widths, got {given}")
        marks = vocabulary.get("source_marks", "none")
        if not isinstance(marks, str) or marks not in SOURCE_MARKS:
            raise DataError(f"{where}: source_marks={marks!r} must be one of {', '.join(SOURCE_MARKS)}")
        # The vocabulary takes precedence over the task, because the model was trained on its ids.
        how["source_marks"] = marks
        return cls(source, target, (lengths[0], lengths[1]), widths, **how)

    @property
    def vocabulary(self) -> dict[str, object]:
        """The vocabulary, as {"source": tokenizer, "target": tokenizer, "lengths", "widths"}.

        The tokenizers include their symbols. If sources have marks, it also has "source_marks".
        """
        tokenizers: dict[str, object] = {"source": self.source.to_json(), "target": self.target.to_json()}
        marks = {} if self.source_marks == "none" else {"source_marks": self.source_marks}
        lengths = [self.shape.source_length, self.shape.target_length]
        return tokenizers | {"lengths": lengths, "widths": self.widths} | marks

    @property
    def source_room(self) -> int:
        """The largest number of tokens of a source without its marks."""
        return self.shape.source_length - mark_count(self.source_marks)

    def marked(self, ids: Iterable[int]) -> list[int]:
        """Returns the ids of a source with its marks, as the model reads them."""
        return marked(ids, self.source_marks)

    def targets(self, batch: Batch) -> TargetTokens:
        """Returns teacher forcing: from a target so far, the model predicts its next token. Padding is not scored."""
        import jax.numpy as jnp

        source, target = jnp.asarray(batch["source"]), jnp.asarray(batch["target"])
        given = jnp.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BEGIN)
        keep = target != PAD
        return TargetTokens((source, given, source != PAD, keep), target, keep)

    def answer(self, model: PyTree, batch: Batch, decoder: Search | None = None) -> Batch:
        """Returns {"tokens": [B T]} int32, the best answer of a decoder of `attnlab.decoding`.

        None is the greedy decoder. With `likelihood`, it also returns {"nats": [B]}, the cost of the first references.
        """
        found = {"tokens": self.answers(model, batch, decoder)["tokens"][:, 0]}
        if self.likelihood:
            losses = self.token_losses(model, batch, None)
            found["nats"] = (losses.nats * losses.scored).sum(axis=1)
        return found

    def answers(
        self, model: SequenceDecoder, batch: Batch, decoder: Search | None = None, keys: PRNGKeyArray | None = None
    ) -> Batch:
        """Returns {"tokens": [B N T], "scores": [B N]}: the N answers of a decoder, the best first.

        `keys` [B] are for decoders that sample. None is the greedy decoder.
        """
        import jax
        import jax.numpy as jnp

        from attnlab.decoding import DecodeProblem, Greedy

        search, length = decoder or Greedy(), self.shape.target_length
        source = jnp.asarray(batch["source"])

        def one(source, key):
            state = model.start(source, source != PAD, length)
            return search.search(DecodeProblem(model.step, state, BEGIN, END, length, PAD), key)

        return jax.vmap(one)(source, keys)._asdict()

    def encode_prompt(self, text: str) -> Batch:
        """Returns {"source": [1 S], "target": [1 T]} with a target of padding.

        Raises:
            DataError: If the text is empty, or longer than the model reads.
        """
        ids = self.source.encode(self.read(text))
        if not ids:
            raise DataError(f"the input {text!r} is empty")
        if len(ids) > (room := self.source_room):
            raise DataError(f"the input has {len(ids)} tokens, but the model reads at most {room}")
        source = pad([self.marked(ids)], self.shape.source_length)
        return {"source": source, "target": pad([[]], self.shape.target_length)}

    def format_answer(self, answer: Batch) -> str:
        """Returns the first answer as text."""
        return self._write(self.target.decode(np.asarray(answer["tokens"])[0].tolist()))

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the symbols of row 0 without padding. A begin mark is shown as "⊢", an end mark as "∎"."""
        source, target = (np.asarray(batch[side])[0].tolist() for side in ("source", "target"))
        end = [SHOWN[END]] if END in target else []
        return {
            "source": [SHOWN.get(n) or self.source.vocabulary.decode([n])[0] for n in source if n != PAD],
            "target": [*self.target.vocabulary.decode(target), *end],
        }

    def model_inputs(self, batch: Batch) -> tuple[np.ndarray | Array, ...]:
        """Returns the inputs of `targets`."""
        return tuple(x for x in self.targets(batch).inputs if x is not None)

    def example(self, batch: Batch, answer: Batch | None = None) -> ModelExample:
        """Returns a source with the answer to it, by teacher forcing."""
        target = batch["target"] if answer is None else np.asarray(answer["tokens"])[:1]
        pair = {"source": np.asarray(batch["source"])[:1], "target": target}
        source, written = (self.tokens(pair)[side] for side in ("source", "target"))
        axes = {
            "encoder": (source, source),
            "decoder": (written, [SHOWN[BEGIN], *written[:-1]]),
            "cross": (written, source),
        }
        return ModelExample(tuple(x[0] for x in self.model_inputs(pair)), axes)


def written(symbols: Symbols) -> str:
    """Returns a side of an example as text. Symbols are separated by spaces."""
    return symbols if isinstance(symbols, str) else " ".join(symbols)


def _numbers(value: object) -> list[int]:
    """Returns a list of positive integers as it is, and an empty list for anything else."""
    return value if isinstance(value, list) and all(isinstance(n, int) and n > 0 for n in value) else []
