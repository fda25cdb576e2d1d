"""One network a file. `MODELS` lists their configurations by name."""

from typing import Any

from attnlab.models.associative_memory import Retriever
from attnlab.models.bert import Bert
from attnlab.models.classifier import Classifier
from attnlab.models.cnn import CNN
from attnlab.models.convolution_probe import Filter
from attnlab.models.convolutional import ConvolutionalLanguage
from attnlab.models.detr import Detr
from attnlab.models.gat import Gat
from attnlab.models.gcn import Gcn
from attnlab.models.language import Language
from attnlab.models.mlp import MLP
from attnlab.models.pair_classifier import Matcher
from attnlab.models.recurrent import RecurrentLanguage
from attnlab.models.sagan import SAGAN
from attnlab.models.seq2seq import Seq2Seq
from attnlab.models.transformer import Transformer
from attnlab.models.vit import ViT
from attnlab.registry import Registry

MODELS: dict[str, Any] = Registry("MODELS")
MODELS |= {
    "transformer": Transformer(),
    "language": Language(),
    "retriever": Retriever(),
    "seq2seq": Seq2Seq(),
    "bahdanau": Seq2Seq(cell="gru", bidirectional=True, attention="bahdanau"),
    "luong": Seq2Seq(bidirectional=True, attention="luong", input_feeding=True),
    "recurrent": RecurrentLanguage(),
    "convolutional": ConvolutionalLanguage(),
    "classifier": Classifier(),
    "bert": Bert(),
    "matcher": Matcher(),
    "vit": ViT(),
    "cnn": CNN(),
    "mlp": MLP(),
    "filter": Filter(),
    "gat": Gat(),
    "gcn": Gcn(),
    "detr": Detr(),
    "sagan": SAGAN(),
}

__all__ = [
    "CNN", "MLP", "MODELS", "SAGAN", "Bert", "Classifier", "ConvolutionalLanguage", "Detr", "Filter", "Gat", "Gcn",
    "Language", "Matcher", "RecurrentLanguage", "Retriever", "Seq2Seq", "Transformer", "ViT",
]  # fmt: skip
