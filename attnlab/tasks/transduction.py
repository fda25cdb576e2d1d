"""The problem of turning one sequence of symbols into another: dates, reversal, pronunciation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.data import vocabulary
from attnlab.data.batches import Buckets, pad, rounded
from attnlab.data.example import Example, Parts, Symbols
from attnlab.data.files import DataError
from attnlab.data.vocabulary import BEGIN, END, PAD, Vocabulary
from attnlab.tasks.base import Batch, Pairs, Problem
from attnlab.tasks.metrics import Answer, References

EXAMINED = 256  # examples of an examination's batch


@dataclass(frozen=True)
class Text:
    """How symbols are read from text, `split(text)`, and written as text, `joint.join(symbols)`."""

    split: Callable[[str], Symbols]
    joint: str = ""


class Transduction(Problem):
    """Pairs of sequences, learned by teacher forcing and answered greedily.

    `parts` holds the examples of "train", "valid" and "test"; every target of a training example is a pair
    of its own. Both vocabularies are of the training part alone: where an examination's source has a symbol
    never seen, it is skipped. `measure(answers, references)` gives the metrics; where examples have groups,
    the headline is given for each group too, as "metric.group".

    Raises DataError where a part holds nothing, or a training example has an empty source or target.
    """

    def __init__(
        self,
        parts: Parts,
        text: Text,
        measure: Callable[[Sequence[Answer], Sequence[References]], dict[str, float]],
        metric: str,
        higher: bool,
        buckets: int = 3,
    ):
        _refuse_empty(parts)
        self.metric, self.higher = metric, higher
        self._parts, self._text, self._measure = parts, text, measure
        pairs = [(example.source, target) for example in parts["train"] for target in example.targets]
        self.source = Vocabulary.of(source for source, _ in pairs)
        self.target = Vocabulary.of(target for _, target in pairs)
        self._sources = pad([self.source.encode(source) for source, _ in pairs])
        self._targets = pad([[*self.target.encode(target), END] for _, target in pairs])
        self.buckets = Buckets([(len(source), len(target) + 1) for source, target in pairs], buckets)
        self.shape = _shape(parts, self.source, self.target)
        self.fingerprint = _fingerprint(parts)

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """{"source": [B S], "target": [B T]} int32; a target ends with END."""
        rows, (S, T) = self.buckets.batch(seed, step, size)
        return {"source": self._sources[rows, :S], "target": self._targets[rows, :T]}

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """Cross-entropy in nats, the mean over the targets' tokens; and {"token_accuracy"}."""
        import jax
        import jax.numpy as jnp
        import optax

        source, target = jnp.asarray(batch["source"]), jnp.asarray(batch["target"])
        keep = target != PAD
        given = jnp.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BEGIN)
        keys = None if key is None else jax.random.split(key, len(source))

        def one(source, given, keep, key):
            return model(source, given, source_keep=source != PAD, target_keep=keep, key=key)

        logits = jax.vmap(one)(source, given, keep, keys)
        # Sums of half-precision exponentials lose the tail.
        logits = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, target)
        right = (jnp.argmax(logits, axis=-1) == target).astype(losses.dtype)
        count = jnp.maximum(keep.sum(), 1).astype(losses.dtype)
        loss, accuracy = (jnp.where(keep, values, 0).sum() / count for values in (losses, right))
        return loss, {"token_accuracy": accuracy}

    def answer(self, model: Any, batch: Batch) -> Batch:
        """{"tokens": [B T]} int32, greedily: the most probable token after those before it."""
        import jax
        import jax.numpy as jnp

        from attnlab.decoding.greedy import greedy

        length = self.shape.target_length

        def one(source):
            return greedy(model.step, model.start(source, source != PAD, length), BEGIN, END, length)

        return {"tokens": jax.vmap(one)(jnp.asarray(batch["source"]))}

    def examination(self, part: str, limit: int | None = None) -> list[Batch]:
        """Batches like those of training, each target the first reference, padding rows all PAD."""
        examples = self._examined(part, limit)
        sources = [self.source.encode(self.source.known(example.source)) for example in examples]
        targets = [[*self.target.encode(self.target.known(example.targets[0])), END] for example in examples]
        size = min(EXAMINED, len(examples))
        missing = -len(examples) % size
        array = {
            "source": pad(sources + [[]] * missing, self.shape.source_length),
            "target": pad(targets + [[]] * missing, self.shape.target_length),
        }
        starts = range(0, len(examples), size)
        return [{name: whole[n : n + size] for name, whole in array.items()} for n in starts]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """The metrics over the examples, and the headline over each group."""
        examples = self._examined(part, limit)
        tokens = [row for answer in answers for row in np.asarray(answer["tokens"]).tolist()]
        if len(tokens) < len(examples):
            raise ValueError(f"{len(tokens)} answers to {len(examples)} examples of {part!r}")
        pairs = [(self.target.decode(row), example) for row, example in zip(tokens, examples, strict=False)]
        groups = sorted({example.group for example in examples} - {""})
        members = {group: [pair for pair in pairs if pair[1].group == group] for group in groups}
        by_group = {f"{self.metric}.{name}": self._score(them)[self.metric] for name, them in members.items()}
        return self._score(pairs) | by_group

    def ask(self, text: str) -> Batch:
        """{"source": [1 S], "target": [1 T]}, the target all PAD."""
        symbols = self._text.split(text)
        if not symbols:
            raise DataError(f"the input {text!r} is empty")
        ids = self.source.encode(symbols)
        width = max(self.shape.source_length, int(rounded(len(ids))))
        return {"source": pad([ids], width), "target": pad([[]], self.shape.target_length)}

    def tell(self, answer: Batch) -> str:
        """The first answer's symbols, joined."""
        return self._text.joint.join(self.target.decode(np.asarray(answer["tokens"])[0].tolist()))

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The symbols of row 0 without padding; the target's end mark is shown as "∎"."""
        target = np.asarray(batch["target"])[0].tolist()
        end = ["∎"] if END in target else []
        return {
            "source": list(self.source.decode(np.asarray(batch["source"])[0].tolist())),
            "target": [*self.target.decode(target), *end],
        }

    def save(self, folder: Path) -> None:
        """Write `vocabulary.json`: {"source": [symbols], "target": [symbols]}."""
        vocabulary.save(Path(folder) / "vocabulary.json", {"source": self.source, "target": self.target})

    def check(self, folder: Path) -> None:
        """Raise DataError where the folder's `vocabulary.json` is not of this data."""
        vocabulary.check(Path(folder) / "vocabulary.json", {"source": self.source, "target": self.target})

    def _score(self, pairs: list[tuple[Answer, Example]]) -> dict[str, float]:
        return self._measure([answer for answer, _ in pairs], [example.targets for _, example in pairs])

    def _examined(self, part: str, limit: int | None) -> list[Example]:
        if part not in ("valid", "test") or (limit is not None and limit < 1):
            raise ValueError(f"{part=} must be 'valid' or 'test', {limit=} None or 1 or more")
        return self._parts[part][:limit]


def _refuse_empty(parts: Parts) -> None:
    for part in ("train", "valid", "test"):
        if not parts.get(part):
            raise DataError(f"the part {part!r} holds no examples")
    for n, (source, targets, _) in enumerate(parts["train"], start=1):
        if not source or not targets or not all(targets):
            raise DataError(f"example {n} of the part 'train' is empty: {source!r}, {targets!r}")


def _shape(parts: Parts, source: Vocabulary, target: Vocabulary) -> Pairs:
    examples = [example for part in parts.values() for example in part]
    longest = max(len(example.source) for example in examples)
    answer = max(len(target) + 1 for example in examples for target in example.targets)
    # Rounded as batches are, so that a table of positions covers their padding.
    return Pairs(source.size, target.size, int(rounded(longest)), int(rounded(answer)))


def _fingerprint(parts: Parts) -> str:
    digest = hashlib.sha256()
    for part in ("train", "valid", "test"):
        for source, targets, group in parts[part]:
            digest.update(repr((part, tuple(source), tuple(map(tuple, targets)), group)).encode())
    return digest.hexdigest()
