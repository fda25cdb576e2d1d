"""Codecs and vocabularies in a file beside a run: ids mean nothing without them."""

import json
from collections.abc import Mapping
from pathlib import Path

from attnlab.data.files import DataError, contents, place
from attnlab.data.units import Codec, from_json
from attnlab.data.vocabulary import Vocabulary


def save(path: Path, codecs: Mapping[str, Codec | Vocabulary]) -> None:
    """Write codecs by name, as JSON."""
    content = {name: codec.to_json() for name, codec in codecs.items()}
    place((json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode(), path)


def check(path: Path, codecs: Mapping[str, Codec | Vocabulary]) -> None:
    """Raise DataError where the codecs saved at `path` are not these: ids would mean other symbols."""
    try:
        saved = json.loads(contents(path, unpack=False))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON: {error}") from error
    for name, codec in codecs.items():
        read = Vocabulary.from_json if isinstance(codec, Vocabulary) else from_json
        before = read(saved.get(name) if isinstance(saved, dict) else None, f"{path}: {name}")
        if before != codec:
            many = len(before.symbols), len(codec.symbols)
            raise DataError(
                f"{path}: its {many[0]} {name} symbols are not the {many[1]} of the data; the model was trained on "
                "other data"
            )
