"""One network a file. `MODELS` lists their configurations by name."""

from typing import Any

from attnlab.models.classifier import Classifier
from attnlab.models.filter import Filter
from attnlab.models.language import Language
from attnlab.models.retriever import Retriever
from attnlab.models.seq2seq import Seq2Seq
from attnlab.models.transformer import Transformer

MODELS: dict[str, Any] = {
    "transformer": Transformer(),
    "language": Language(),
    "classifier": Classifier(),
    "retriever": Retriever(),
    "filter": Filter(),
    "seq2seq": Seq2Seq(),
    "bahdanau": Seq2Seq(cell="gru", bidirectional=True, attention="bahdanau"),
    "luong": Seq2Seq(bidirectional=True, attention="luong", input_feeding=True),
}

__all__ = ["MODELS", "Classifier", "Filter", "Language", "Retriever", "Seq2Seq", "Transformer"]
