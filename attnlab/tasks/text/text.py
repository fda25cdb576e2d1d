"""To go on with a text: language modelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.data.io import files
from attnlab.data.names import PARTS
from attnlab.data.text import shakespeare
from attnlab.data.text.units import Characters, TokenizerSpec
from attnlab.tasks.base import checks
from attnlab.tasks.base.task import Task
from attnlab.tasks.text.continuation import LanguageModelData
from attnlab.tasks.text.prompting import PromptInterface


@dataclass(frozen=True)
class TextTask(Task):
    """A task of text to go on with: its symbols, how many are read at once in training, and in examinations."""

    units: TokenizerSpec = Characters()
    length: int = 64
    longest: int = 0

    def __post_init__(self):
        checks.units(self)
        checks.counts(self, ["length"], most=1_000_000)
        checks.counts(self, ["longest"], least=0, most=1_000_000)
        if 0 < self.longest < self.length:
            raise ValueError(f"task.longest={self.longest} must be at least task.length={self.length}, or 0")

    @property
    def training_only_fields(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """The symbols, where these spell the text as it is: what it costs is told by the character."""
        # Text in lower case is another text, of fewer characters to tell apart.
        return ("units",) if self.units.spells and not getattr(self.units, "lower", False) else ()

    def with_test(self, problem: Any, file: str) -> LanguageModelData:
        """The problem with a file of text as its test."""
        return problem.with_test(_content(file), file)

    def text_interface(self, vocabulary: dict[str, Any], where: str) -> PromptInterface:
        """A `PromptInterface` of the vocabulary."""
        return PromptInterface.restored(vocabulary, where)


@dataclass(frozen=True)
class Shakespeare(TextTask):
    """Tiny Shakespeare, a megabyte of plays: each symbol from those before it; scored in nats a character.

    `units` are its symbols: characters, bytes, merged pairs, or words, which are scored in nats a word. Sequences are
    `length` symbols long, in training as in examinations; where `longest` is given, examinations and what is gone on
    with are that long instead, and scored by how far into the block a symbol stands as well: what was never trained on.
    The test is the last tenth, which published numbers call validation.
    """

    def load(self) -> LanguageModelData:
        """Read the plays, fetched where they are not at hand."""
        return LanguageModelData(shakespeare.parts(), self.units, self.length, self.longest)


@dataclass(frozen=True)
class Text(TextTask):
    """Text of one's own: each symbol from those before it; scored in nats a character.

    `train`, `valid` and `test` name a file each, UTF-8, gzipped where its name ends in .gz. The rest as in
    `shakespeare`.
    """

    train: str = ""
    valid: str = ""
    test: str = ""

    def load(self) -> LanguageModelData:
        """Read one's files."""
        checks.files(self)
        parts = {part: _content(getattr(self, part)) for part in PARTS}
        return LanguageModelData(parts, self.units, self.length, self.longest)


def _content(name: str) -> str:
    content = files.text(files.contents(files.user_path(name), name.endswith(".gz")), name)
    if not content.strip():
        raise files.DataError(f"{name} holds no text")
    return content.removeprefix("\ufeff")
