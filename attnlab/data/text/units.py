"""The kinds of tokenizers by name: characters, bytes, words and BPE."""

from dataclasses import asdict, fields
from pathlib import Path

from attnlab.data.io.files import DataError
from attnlab.data.text.bpe import Bpe
from attnlab.data.text.listed import Bytes, Characters, Words
from attnlab.data.text.tokenizer import Tokenizer, TokenizerSpec
from attnlab.data.text.vocabulary import Vocabulary
from attnlab.registry import Registry

UNITS: dict[str, TokenizerSpec] = Registry("UNITS")
UNITS |= {units.kind: units for units in (Characters(), Bytes(), Words(), Bpe())}


def from_json(content: object, path: str | Path = "units") -> Tokenizer:
    """Reads the tokenizer that `Tokenizer.to_json` wrote.

    Args:
      content: the value read from JSON.
      path: the file it comes from, used in messages.

    Raises:
      DataError: if `content` does not describe a tokenizer.
    """
    if not isinstance(content, dict) or content.get("kind") not in list(UNITS):
        raise DataError(f"{path} contains no tokenizer: its kind must be one of {', '.join(UNITS)}")
    kind = type(UNITS[content["kind"]])
    default = asdict(UNITS[content["kind"]])
    for name, value in default.items():
        if type(content.get(name)) is not type(value):
            raise DataError(f"{path}: {name}={content.get(name)!r} must be of type {type(value).__name__}")
    vocabulary = Vocabulary.from_json(content.get("symbols"), path)
    try:
        return kind(**{each.name: content[each.name] for each in fields(kind)}).restored(vocabulary, content)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
