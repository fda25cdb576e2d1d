"""The problem of going on with a text: every symbol foretold from those before it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from itertools import combinations, pairwise

import numpy as np

from attnlab.data.blocks import Blocks
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part
from attnlab.data.repeats import repeated
from attnlab.data.text.units import Bytes, TokenizerSpec
from attnlab.data.text.vocabulary import PAD, RESERVED, require_symbol
from attnlab.tasks.base.batching import even
from attnlab.tasks.base.metrics import perplexity
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.task import Batch, Row, TaskData
from attnlab.tasks.text.prompting import PromptInterface, normal

EXAMINED = 128  # blocks of an examination's batch
LONG = 40  # characters of a line that is not likely to be written twice


class LanguageModelData(PromptInterface, TaskData):
    """Blocks of `length` symbols of a text; examined, and gone on with, in blocks of `longest` (0: as long).

    `parts` holds the text of "train", "valid" and "test"; `units` says what its symbols are, and which there are is
    learned from the training part alone. Examinations read their part block after block, each without what came before
    it; symbols never seen in training are left out of them, and `notes` say how many, and which are the commonest, and
    how many long lines are of training, too. The text is read in NFC, and lines end as "\\n", whatever they ended with.

    Raises DataError for a part of fewer symbols than a block and the one after it, or more than half of which training
    has never seen.
    """

    metric, higher = "nats_per_character", False  # of words "nats_per_word"
    figure = "nats"

    def __init__(self, parts: Mapping[str, str], units: TokenizerSpec, length: int, longest: int = 0):
        taken = {"train": ("length", length)}
        examined = ("longest", longest) if longest else ("length", length)
        parts = {part: normal(parts[part]) for part in PARTS}
        super().__init__(units.fit([parts["train"]]), longest or length)
        self.metric = f"nats_per_{self._measure}"
        self._ids = {
            part: np.array(self.codec.encode(text, known=part != "train"), np.int32) for part, text in parts.items()
        }
        long = {part: [line for line in text.splitlines() if len(line) >= LONG] for part, text in parts.items()}
        same = [f"{part}: the very text of {one}" for one, part in combinations(PARTS, 2) if parts[one] == parts[part]]
        self.notes = (
            *self._unseen({part: parts[part] for part in PARTS[1:]}),
            *same,
            *repeated(long, f"lines of {LONG} characters or more"),
        )
        for part, ids in self._ids.items():
            field, size = taken.get(part, examined)
            if len(ids) <= size:
                raise DataError(f"the part {part!r} holds {len(ids)} symbols: task.{field}={size} takes more")
        self._blocks = Blocks(self._ids["train"], length)
        self.fingerprint = _fingerprint(parts)

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """{"tokens", "answers": [B T] int32, "asked": [B T]}: every symbol's answer is the next one."""
        return _asked(self._blocks.batch(seed, step, size))

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """The blocks of a part, or `limit` of them, in the order of the text; what is behind its end asks nothing."""
        return even(self._examined(part, limit), EXAMINED)

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """{"nats_per_character", "perplexity" (of a symbol), "accuracy"}; the first symbol of a part is given.

        The characters are those of the symbols that are asked for. What was left out costs nothing and has none. Of
        words it is "nats_per_word": rare ones are left out, white space is not foretold, and by the character the
        number would be lower than that of any model that spells.

        Where blocks are longer than those trained on, also "nats_per_character.1-64", ".65-128", …: of the symbols at
        these places of a block, the first as far as trained on, then up to twice as far each time.
        """
        examined = self._examined(part, limit)
        blocks = [row[asked] for row, asked in zip(examined["answers"], examined["asked"], strict=True)]
        told = np.concatenate(blocks)
        nats, right = (np.concatenate([np.asarray(a[name], np.float64) for a in answers]) for name in ("nats", "right"))
        found = {
            self.metric: float(nats.sum()) / max(1, self._amount(told)),
            "perplexity": perplexity(float(nats.sum()), len(told)),
            "accuracy": float(right.sum()) / len(told),
        }
        length, longest = self._blocks.length, self.shape.length
        edges = [0, *_doubled(length, longest)]
        if longest > length:
            up_to = [sum(self._amount(row[:end]) for row in blocks) for end in edges]
            for n, (first, last) in enumerate(pairwise(edges)):
                amount = up_to[n + 1] - up_to[n]
                found[f"{self.metric}.{first + 1}-{last}"] = float(nats[:, first:last].sum()) / max(1, amount)
        return found

    def with_test(self, text: str, path: str) -> LanguageModelData:
        """The same problem with the text of a file as its test.

        Raises DataError where it has fewer than two symbols, or more than half were never seen in training.
        """
        found, text = copy(self), normal(text)
        found.notes = tuple(self._unseen({path: text}))
        found._ids = self._ids | {"test": np.array(self.codec.encode(text, known=True), np.int32)}
        if len(found._ids["test"]) < 2:
            raise DataError(
                f"{path} holds {len(found._ids['test'])} symbols: it needs two, of which the second is scored"
            )
        return found

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """The text of each block, and what its symbols cost in nats together."""
        examined = self._examined(part, limit)
        nats = [float(n) for answer in answers for n in np.asarray(answer["nats"], np.float64).sum(axis=1)]
        pairs = zip(examined["answers"], examined["asked"], strict=True)
        texts = [self.codec.decode(row[on], within=True) for row, on in pairs]
        return [Row(text, None, None, cost) for text, cost in zip(texts, nats, strict=False)]

    @property
    def _measure(self) -> str:
        """What the cost is reckoned by: characters, or words where these alone come back."""
        return "character" if self.codec.units.spells else "word"

    def _amount(self, ids: np.ndarray) -> int:
        """How many characters, or words, symbols in the midst of the text are."""
        if isinstance(self.codec.units, Bytes):
            # Blocks cut characters in two: each counts where its first byte is, and the others are 10xxxxxx.
            return int(((ids - RESERVED) & 0xC0 != 0x80).sum())
        return len(self.codec.decode(ids, within=True) if self.codec.units.spells else ids)

    def _unseen(self, parts: Mapping[str, str]) -> Iterator[str]:
        """A line for each text, by its name, with symbols never seen in training."""
        for name, text in parts.items():
            unseen, count = self.codec.unknown_symbols(text)
            told = f"{len(unseen):,} of {count:,} symbols were never seen in training"
            if 2 * len(unseen) > count:
                called = f"the part {name!r}" if name in PARTS else name
                raise DataError(f"{called}: {told}: {_commonest(unseen)}")
            if unseen:
                yield f"{name}: {told} and are left out: {_commonest(unseen)}"

    def _examined(self, part: str, limit: int | None) -> Batch:
        """What is examined, block by block."""
        check_part(part, limit)
        ids, length = self._ids[part], self.shape.length
        rows = np.sort(sampled(-(-(len(ids) - 1) // length), limit))
        places = (rows * length)[:, None] + np.arange(length + 1)
        whole = _asked(np.where(places < len(ids), ids[np.minimum(places, len(ids) - 1)], PAD))
        return whole | {"asked": places[:, 1:] < len(ids)}


def _doubled(length: int, longest: int) -> list[int]:
    """A length, twice as much, … up to the longest."""
    found = [length]
    while found[-1] < longest:
        found.append(min(2 * found[-1], longest))
    return found


def _commonest(symbols: list[str], most: int = 3) -> str:
    """The symbols that occur most often, each with how often."""
    each = Counter(symbols).most_common()
    return ", ".join(f"{require_symbol(symbol)} {often:,} ×" for symbol, often in each[:most]) + ", …" * (
        len(each) > most
    )


def _asked(blocks: np.ndarray) -> Batch:
    """Blocks with the symbol after them, every symbol asked for what comes next."""
    tokens, answers = blocks[:, :-1], blocks[:, 1:]
    return {"tokens": tokens, "answers": answers, "asked": np.ones(tokens.shape, bool)}


def _fingerprint(parts: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for part in PARTS:
        # Its length before it: what ends one part could begin the next.
        digest.update(f"{part} {len(parts[part])} ".encode() + parts[part].encode(errors="surrogatepass"))
    return digest.hexdigest()
