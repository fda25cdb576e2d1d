"""One network a file. `MODELS` lists their configurations by name."""

from typing import Any

from attnlab.models.transformer import Transformer

MODELS: dict[str, Any] = {"transformer": Transformer()}

__all__ = ["MODELS", "Transformer"]
