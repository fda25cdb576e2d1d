"""Models, one network per file. `MODELS` maps a name to the configuration of a model."""

from attnlab.models.associative_memory import AssociativeMemory
from attnlab.models.bert import Bert
from attnlab.models.classifier import Classifier
from attnlab.models.cnn import CNN
from attnlab.models.convolution_probe import ConvolutionProbe
from attnlab.models.convolutional import ConvolutionalLanguage
from attnlab.models.detr import Detr
from attnlab.models.gat import Gat
from attnlab.models.gcn import Gcn
from attnlab.models.interfaces import ModelConfig
from attnlab.models.language import Language
from attnlab.models.mlp import MLP
from attnlab.models.pair_classifier import PairClassifier
from attnlab.models.published import PUBLISHED
from attnlab.models.recurrent import RecurrentLanguage
from attnlab.models.sagan import SAGAN
from attnlab.models.seq2seq import Seq2Seq
from attnlab.models.transformer import Transformer
from attnlab.models.vit import ViT
from attnlab.registry import Registry

MODELS: dict[str, ModelConfig] = Registry("MODELS")
MODELS |= {
    "transformer": Transformer(),
    "language": Language(),
    **PUBLISHED,
    "associative-memory": AssociativeMemory(),
    "seq2seq": Seq2Seq(),
    "bahdanau": Seq2Seq(cell="gru", bidirectional=True, attention="bahdanau"),
    "luong": Seq2Seq(bidirectional=True, attention="luong", input_feeding=True),
    "recurrent": RecurrentLanguage(),
    "convolutional": ConvolutionalLanguage(),
    "classifier": Classifier(),
    "bert": Bert(),
    "pair-classifier": PairClassifier(),
    "vit": ViT(),
    "cnn": CNN(),
    "mlp": MLP(),
    "convolution-probe": ConvolutionProbe(),
    "gat": Gat(),
    "gcn": Gcn(),
    "detr": Detr(),
    "sagan": SAGAN(),
}

__all__ = [
    "CNN",
    "MLP",
    "MODELS",
    "SAGAN",
    "AssociativeMemory",
    "Bert",
    "Classifier",
    "ConvolutionProbe",
    "ConvolutionalLanguage",
    "Detr",
    "Gat",
    "Gcn",
    "Language",
    "ModelConfig",
    "PairClassifier",
    "RecurrentLanguage",
    "Seq2Seq",
    "Transformer",
    "ViT",
]  # fmt: skip
