"""The data of language modelling: every symbol is predicted from those before it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from itertools import combinations, pairwise

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data.blocks import Blocks
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part
from attnlab.data.repeats import repeated
from attnlab.data.text.units import Bytes, TokenizerSpec
from attnlab.data.text.vocabulary import PAD, RESERVED, require_symbol
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.metrics import ACCURACY, PERPLEXITY, perplexity
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.task import Row, TaskData
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.text.prompting import PromptInterface, normal

EXAMINED = 128  # blocks in an evaluation batch
LONG = 40  # characters from which a line is unlikely to occur twice by chance
LONG_LINES = f"lines of {LONG} characters or more"


class LanguageModelData(PromptInterface, TaskData):
    """A text in blocks of `length` symbols, for language modelling.

    Evaluation reads a part block by block. Each block is read without the text before it. Symbols that never occur in
    training are left out of the evaluation parts. `notes` report how many they are, the most frequent ones, and how
    many long lines also occur in training. The text is normalised to NFC, and all line ends become "\\n".

    Args:
        parts: The text of "train", "valid" and "test".
        units: The tokenizer of the text. The vocabulary is learned from the training part only.
        length: The number of symbols of a training block.
        longest: The number of symbols of an evaluation block, and of a prompt and its continuation. 0 means `length`.

    Raises:
        DataError: If a part has no more symbols than a block, or if more than half of its symbols never occur in
            training.
    """

    more_metrics = (PERPLEXITY, ACCURACY)
    figure = "nats"

    def __init__(self, parts: Mapping[str, str], units: TokenizerSpec, length: int, longest: int = 0):
        taken = {"train": ("length", length)}
        examined = ("longest", longest) if longest else ("length", length)
        parts = {part: normal(parts[part]) for part in PARTS}
        super().__init__(units.fit([parts["train"]]), longest or length)
        self.metric = Metric(f"nats_per_{self._measure}", low=0)
        self._ids = {
            part: np.array(self.tokenizer.encode(text, known=part != "train"), np.int32) for part, text in parts.items()
        }
        long = {part: _long_lines(text) for part, text in parts.items()}
        self._long_lines = long["train"]
        same = [
            f"{part}: the text equals that of {one}"
            for one, part in combinations(PARTS, 2)
            if parts[one] == parts[part]
        ]
        self.notes = (
            *self._unseen({part: parts[part] for part in PARTS[1:]}),
            *same,
            *repeated(long, LONG_LINES),
        )
        for part, ids in self._ids.items():
            field, size = taken.get(part, examined)
            if len(ids) <= size:
                raise DataError(f"the part {part!r} has {len(ids)} symbols, but task.{field}={size} requires more")
        self._blocks = Blocks(self._ids["train"], length)
        self.fingerprint = _fingerprint(parts)

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns {"tokens", "answers": [B T] int32, "scored": [B T]}. Every answer is the next symbol."""
        return _next_symbol_batch(self._blocks.batch(seed, step, size))

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns the blocks of a part, or `limit` of them, in the order of the text.

        Positions after its end are not scored.
        """
        return equal_batches(self._examined(part, limit), EXAMINED)

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"nats_per_character", "perplexity", "accuracy"}.

        The perplexity is that of a symbol. The characters are those of the scored symbols. The first symbol of a part
        is given and not scored. Symbols that were left out have neither cost nor characters.

        For units of words, the metric is "nats_per_word" instead. Rare words are left out and white space is not
        predicted, so that a cost by character would be lower than that of any model that spells.

        If evaluation blocks are longer than training blocks, the cost is also reported by position in the block, for
        example "nats_per_character.1-64" and "nats_per_character.65-128". The first range is the training length, and
        each further range ends at twice the previous end.
        """
        examined = self._examined(part, limit)
        blocks = [row[scored] for row, scored in zip(examined["answers"], examined["scored"], strict=True)]
        expected = np.concatenate(blocks)
        nats, right = (np.concatenate([np.asarray(a[name], np.float64) for a in answers]) for name in ("nats", "right"))
        found = {
            self.metric.name: float(nats.sum()) / max(1, self._amount(expected)),
            "perplexity": perplexity(float(nats.sum()), len(expected)),
            "accuracy": float(right.sum()) / len(expected),
        }
        length, longest = self._blocks.length, self.shape.length
        edges = [0, *_doubled(length, longest)]
        if longest > length:
            up_to = [sum(self._amount(row[:end]) for row in blocks) for end in edges]
            for n, (first, last) in enumerate(pairwise(edges)):
                amount = up_to[n + 1] - up_to[n]
                found[f"{self.metric.name}.{first + 1}-{last}"] = float(nats[:, first:last].sum()) / max(1, amount)
        return found

    def with_test(self, text: str, path: str) -> LanguageModelData:
        """Returns the data with another text as the test part.

        Args:
            text: The text.
            path: The path of its file, for messages.

        Raises:
            DataError: If the text has fewer than two symbols, or if more than half of them never occur in training.
        """
        found, text = copy(self), normal(text)
        found.notes = (
            *self._unseen({path: text}),
            *repeated({"train": self._long_lines, path: _long_lines(text)}, LONG_LINES),
        )
        found._ids = self._ids | {"test": np.array(self.tokenizer.encode(text, known=True), np.int32)}
        if len(found._ids["test"]) < 2:
            raise DataError(
                f"{path} has {len(found._ids['test'])} symbols, but needs at least 2, because the first is not scored"
            )
        return found

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns the scored text of each block, and the sum of the costs of its symbols in nats.

        A block scores the symbols after its first, which the block before has scored.
        """
        examined = self._examined(part, limit)
        nats = [float(n) for answer in answers for n in np.asarray(answer["nats"], np.float64).sum(axis=1)]
        pairs = zip(examined["answers"], examined["scored"], strict=True)
        texts = [self.tokenizer.decode(row[on], within=True) for row, on in pairs]
        return [Row(text, None, None, cost) for text, cost in zip(texts, nats, strict=False)]

    @property
    def _measure(self) -> str:
        """The unit of the cost: "character", or "word" if the text cannot be restored from its symbols."""
        return "character" if self.tokenizer.units.spells else "word"

    def _amount(self, ids: np.ndarray) -> int:
        """Returns the number of characters, or words, of symbols inside the text."""
        if isinstance(self.tokenizer.units, Bytes):
            # Blocks may split a character. It counts at its first byte; its other bytes are 10xxxxxx in UTF-8.
            return int(((ids - RESERVED) & 0xC0 != 0x80).sum())
        return len(self.tokenizer.decode(ids, within=True) if self.tokenizer.units.spells else ids)

    def _unseen(self, parts: Mapping[str, str]) -> Iterator[str]:
        """Yields a message for each text, by name, that has symbols which never occur in training."""
        for name, text in parts.items():
            unseen, count = self.tokenizer.unknown_symbols(text)
            share = f"{len(unseen):,} of {count:,} symbols do not occur in training"
            if 2 * len(unseen) > count:
                called = f"the part {name!r}" if name in PARTS else name
                raise DataError(f"{called}: {share}: {_commonest(unseen)}")
            if unseen:
                yield f"{name}: {share} and are left out: {_commonest(unseen)}"

    def _examined(self, part: str, limit: int | None) -> Batch:
        """Returns the evaluated blocks of a part."""
        check_part(part, limit)
        ids, length = self._ids[part], self.shape.length
        rows = np.sort(sampled(-(-(len(ids) - 1) // length), limit))
        places = (rows * length)[:, None] + np.arange(length + 1)
        whole = _next_symbol_batch(np.where(places < len(ids), ids[np.minimum(places, len(ids) - 1)], PAD))
        return whole | {"scored": places[:, 1:] < len(ids)}


def _doubled(length: int, longest: int) -> list[int]:
    """Returns `length`, its double, and so on up to `longest`.

    The last value is `longest` itself.
    """
    found = [length]
    while found[-1] < longest:
        found.append(min(2 * found[-1], longest))
    return found


def _commonest(symbols: list[str], most: int = 3) -> str:
    """Returns the most frequent symbols with their counts, as text."""
    each = Counter(symbols).most_common()
    return ", ".join(f"{require_symbol(symbol)} {often:,} ×" for symbol, often in each[:most]) + ", …" * (
        len(each) > most
    )


def _next_symbol_batch(blocks: np.ndarray) -> Batch:
    """Returns blocks as a batch in which the answer at every symbol is the next symbol."""
    tokens, answers = blocks[:, :-1], blocks[:, 1:]
    return {"tokens": tokens, "answers": answers, "scored": np.ones(tokens.shape, bool)}


def _long_lines(text: str) -> list[str]:
    """Returns the lines of a text that are unlikely to occur twice by chance."""
    return [line for line in text.splitlines() if len(line) >= LONG]


def _fingerprint(parts: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for part in PARTS:
        # The length precedes the text: otherwise, text moved from one part to the next would not change the digest.
        digest.update(f"{part} {len(parts[part])} ".encode() + parts[part].encode(errors="surrogatepass"))
    return digest.hexdigest()
