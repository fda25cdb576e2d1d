"""The problem of turning one text into another: dates, reversal, pronunciation, translation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.data import codecs
from attnlab.data.batches import Buckets, pad, rounded
from attnlab.data.example import Example, Parts, Symbols
from attnlab.data.files import DataError
from attnlab.data.units import Codec, Units
from attnlab.data.vocabulary import BEGIN, END, PAD
from attnlab.tasks.base import Batch, Pairs, Problem
from attnlab.tasks.metrics import perplexity

EXAMINED = 256  # examples of an examination's batch
Measure = Callable[[Sequence[str], Sequence[Sequence[str]]], dict[str, float]]


def written(symbols: Symbols) -> str:
    """A side of an example as text: as it is, or its symbols with a space between them."""
    return symbols if isinstance(symbols, str) else " ".join(symbols)


class Transduction(Problem):
    """Pairs of texts, learned by teacher forcing and answered by decoding.

    `parts` holds the examples of "train", "valid" and "test"; every target of a training example is a pair of its own.
    `units` says what the symbols of sources and of targets are, or, given once, of both together; which there are is
    learned from the training part alone. Where an examination's source has a symbol never seen, it is skipped; `notes`
    say of how many. `measure(answers, references)` gives the metrics of texts; where examples have groups, the headline
    is given for each group too, as "metric.group". `read` prepares what a person types, `write` an answer to be read by
    one. `smoothing` is the share of the target that all symbols have alike (Szegedy et al. 2016, section 7). With
    `likelihood`, examinations also ask how likely the first references are: {"perplexity"}, a symbol's.

    Raises DataError where a part holds nothing, or a training example has an empty source or target.
    """

    decodes = True

    def __init__(
        self,
        parts: Parts,
        units: tuple[Units, ...],
        measure: Measure,
        metric: str,
        higher: bool,
        buckets: int = 3,
        read: Callable[[str], str] = str.strip,
        write: Callable[[str], str] = str,
        smoothing: float = 0.0,
        likelihood: bool = False,
    ):
        _refuse_empty(parts)
        self.metric, self.higher, self.smoothing, self.likelihood = metric, higher, smoothing, likelihood
        self._parts, self.read, self._write, self._measure = parts, read, write, measure
        self.source, self.target = _codecs(parts, units)
        pairs = [(example.source, target) for example in parts["train"] for target in example.targets]
        sources = [self.source.encode(written(source)) for source, _ in pairs]
        targets = [[*self.target.encode(written(target)), END] for _, target in pairs]
        self._sources, self._targets = pad(sources), pad(targets)
        self.buckets = Buckets(list(zip(map(len, sources), map(len, targets), strict=True)), buckets)
        encoded = {part: self._encoded(parts[part]) for part in ("valid", "test")}
        self._examples = {part: (sources, targets) for part, (sources, targets, _) in encoded.items()}
        self.notes = tuple(
            f"{part}: {count} of {len(parts[part])} examples have symbols never seen in training, and are read without"
            for part, (_, _, count) in encoded.items()
            if count
        )
        self.shape = self._shape(sources, targets)
        self.fingerprint = _fingerprint(parts)

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """{"source": [B S], "target": [B T]} int32; a target ends with END."""
        rows, (S, T) = self.buckets.batch(seed, step, size)
        return {"source": self._sources[rows, :S], "target": self._targets[rows, :T]}

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

    def examination(self, part: str, limit: int | None = None) -> list[Batch]:
        """Batches like those of training, each target the first reference, padding rows all PAD."""
        count = len(self._examined(part, limit))
        sources, targets = (side[:count] for side in self._examples[part])
        size = min(EXAMINED, count)
        missing = -count % size
        array = {
            "source": pad(sources + [[]] * missing, self.shape.source_length),
            "target": pad(targets + [[]] * missing, self.shape.target_length),
        }
        starts = range(0, count, size)
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
        return self._score(pairs) | self._likelihood(part, answers, limit) | by_group

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

    def save(self, folder: Path) -> None:
        """Write `vocabulary.json`: {"source": how it is read, "target": how it is written}, with their symbols."""
        codecs.save(Path(folder) / "vocabulary.json", {"source": self.source, "target": self.target})

    def check(self, folder: Path) -> None:
        """Raise DataError where the folder's `vocabulary.json` is not of this data."""
        codecs.check(Path(folder) / "vocabulary.json", {"source": self.source, "target": self.target})

    def _likelihood(self, part: str, answers: list[Batch], limit: int | None) -> dict[str, float]:
        if not all("nats" in answer for answer in answers):
            return {}
        nats = sum(float(np.asarray(answer["nats"], np.float64).sum()) for answer in answers)
        tokens = sum(map(len, self._examples[part][1][: len(self._examined(part, limit))]))
        return {"perplexity": perplexity(nats, tokens)}

    def _score(self, pairs: list[tuple[str, Example]]) -> dict[str, float]:
        references = [[self.target.plain(written(target)) for target in example.targets] for _, example in pairs]
        return self._measure([answer for answer, _ in pairs], references)

    def _encoded(self, examples: Iterable[Example]) -> tuple[list[list[int]], list[list[int]], int]:
        """The ids of sources and of first references, symbols never seen left out; of how many examples."""
        sources, targets, odd = [], [], 0
        for example in examples:
            found = [_known(self.source, example.source), _known(self.target, example.targets[0])]
            (source, target), whole = zip(*found, strict=True)
            sources.append(source)
            targets.append([*target, END])
            odd += not all(whole)
        return sources, targets, odd

    def _shape(self, sources: list[list[int]], targets: list[list[int]]) -> Pairs:
        """Rounded as batches are, so that a table of positions covers their padding; room for any reference."""
        examined = [example for part in ("valid", "test") for example in self._parts[part]]
        references = [self.target.encode(written(target), known=True) for each in examined for target in each.targets]
        longest = max(map(len, sources + [ids for sides in self._examples.values() for ids in sides[0]]))
        answer = max(max(map(len, targets)), 1 + max(map(len, references)))
        size = self.source.vocabulary.size, self.target.vocabulary.size
        return Pairs(*size, int(rounded(longest)), int(rounded(answer)), joint=self.source == self.target)

    def _examined(self, part: str, limit: int | None) -> list[Example]:
        if part not in ("valid", "test") or (limit is not None and limit < 1):
            raise ValueError(f"{part=} must be 'valid' or 'test', {limit=} None or 1 or more")
        return self._parts[part][:limit]


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


def _known(codec: Codec, symbols: Symbols) -> tuple[list[int], bool]:
    """The ids of a side without symbols never seen, and whether that is all of it."""
    try:
        return codec.encode(written(symbols)), True
    except DataError:
        return codec.encode(written(symbols), known=True), False


def _codecs(parts: Parts, units: tuple[Units, ...]) -> tuple[Codec, Codec]:
    """How both sides are read and written, learned from the training part alone."""
    sources = [written(example.source) for example in parts["train"]]
    targets = [written(target) for example in parts["train"] for target in example.targets]
    if len(units) == 1:
        both = units[0].fit([*sources, *targets])
        return both, both
    return units[0].fit(sources), units[1].fit(targets)


def _refuse_empty(parts: Parts) -> None:
    for part in ("train", "valid", "test"):
        if not parts.get(part):
            raise DataError(f"the part {part!r} holds no examples")
    for n, (source, targets, _) in enumerate(parts["train"], start=1):
        if not source or not targets or not all(targets):
            raise DataError(f"example {n} of the part 'train' is empty: {source!r}, {targets!r}")


def _fingerprint(parts: Parts) -> str:
    digest = hashlib.sha256()
    for part in ("train", "valid", "test"):
        for source, targets, group in parts[part]:
            digest.update(repr((part, tuple(source), tuple(map(tuple, targets)), group)).encode())
    return digest.hexdigest()
