"""Language modelling on Tiny Shakespeare or your own text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from attnlab.data.io import files
from attnlab.data.text import shakespeare
from attnlab.data.text.units import Characters, TokenizerSpec
from attnlab.tasks.base import checks
from attnlab.tasks.base.parts import paths
from attnlab.tasks.base.task import Task
from attnlab.tasks.text.continuation import LanguageModelData
from attnlab.tasks.text.prompting import PromptInterface


@runtime_checkable
class LowerCasing(Protocol):
    """Units that may convert the text to lower case."""

    lower: bool


@dataclass(frozen=True)
class TextTask(Task):
    """The base class of language modelling tasks."""

    units: TokenizerSpec = Characters()
    """The units (tokenizer) of the text: characters, bytes, BPE or words. Words are scored in nats per word."""
    length: int = 64
    """The number of symbols of a training sequence."""
    longest: int = 0
    """The number of symbols of an evaluation sequence, and of a prompt with its continuation. 0 means `length`.

    If it is larger than `length`, scores are also reported by position in the sequence. This shows how well a model
    generalises to lengths that it was not trained on.
    """

    def __post_init__(self):
        checks.units(self)
        checks.counts(self, ["length"], most=1_000_000)
        checks.counts(self, ["longest"], least=0, most=1_000_000)
        if 0 < self.longest < self.length:
            raise ValueError(f"task.longest={self.longest} must be at least task.length={self.length}, or 0")

    @property
    def training_only_fields(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """The fields that do not change the evaluation data: `units`, if they reproduce the text exactly.

        The cost is then reported per character, and is comparable between units. Lower-casing makes another text with
        fewer different characters, so that lower-casing units do not count.
        """
        # Text in lower case is another text, with fewer different characters.
        lowers = isinstance(self.units, LowerCasing) and self.units.lower
        return ("units",) if self.units.spells and not lowers else ()

    def with_test(self, problem: LanguageModelData, file: str) -> LanguageModelData:
        """Returns the data with a file of text as the test part."""
        return problem.with_test(_content(file), file)

    def text_interface(self, vocabulary: dict[str, object], where: str) -> PromptInterface:
        """Returns the `PromptInterface` of the vocabulary."""
        return PromptInterface.restored(vocabulary, where)


@dataclass(frozen=True)
class Shakespeare(TextTask):
    """Tiny Shakespeare, a megabyte of plays: predict each symbol from those before it. Scored in nats per character.

    The test part is the last tenth, which published numbers call validation.
    """

    def load(self) -> LanguageModelData:
        """Reads the plays. They are downloaded if they are not available locally."""
        return LanguageModelData(shakespeare.parts(), self.units, self.length, self.longest)


@dataclass(frozen=True)
class Text(TextTask):
    """Your own text: predict each symbol from those before it. Scored in nats per character.

    The other fields are those of `shakespeare`.
    """

    train: str = ""
    """The path of the training file in UTF-8. A file whose name ends in .gz is decompressed with gzip."""
    valid: str = ""
    """The path of the validation file."""
    test: str = ""
    """The path of the test file."""

    def load(self) -> LanguageModelData:
        """Reads your files."""
        checks.files(self)
        parts = {part: _content(path) for part, path in paths(self).items()}
        return LanguageModelData(parts, self.units, self.length, self.longest)


def _content(name: str) -> str:
    content = files.text(files.contents(files.user_path(name), name.endswith(".gz")), name)
    if not content.strip():
        raise files.DataError(f"{name} contains no text")
    return content.removeprefix("\ufeff")
