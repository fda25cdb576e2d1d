"""One network a file. `MODELS` lists their configurations by name."""

from typing import Any

from attnlab.models.language import Language
from attnlab.models.retriever import Retriever
from attnlab.models.transformer import Transformer

MODELS: dict[str, Any] = {
    "transformer": Transformer(),
    "language": Language(),
    "retriever": Retriever(),
}

__all__ = ["MODELS", "Language", "Retriever", "Transformer"]
