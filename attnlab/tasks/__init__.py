"""What a model is asked to do: data, batches, the loss, the metrics. Importing it imports no jax."""

from attnlab.registry import Registry
from attnlab.tasks.associations import Associations
from attnlab.tasks.base import Classes, Frames, Image, Pairs, Problem, Task, Tokens
from attnlab.tasks.dates import Dates
from attnlab.tasks.detection import Boxes, Cells, Discs
from attnlab.tasks.documents import DocumentPairs, Documents
from attnlab.tasks.filtering import Convolution, Filtered
from attnlab.tasks.g2p import CMUdict, Sigmorphon
from attnlab.tasks.generation import Generation
from attnlab.tasks.images import FashionMNIST, Figures, Images
from attnlab.tasks.induction import Induction
from attnlab.tasks.listops import ListOps
from attnlab.tasks.nodes import Cora, Nodes
from attnlab.tasks.pathfinder import Pathfinder
from attnlab.tasks.recall import Recall
from attnlab.tasks.reverse import Copy, Reverse
from attnlab.tasks.scan import Scan
from attnlab.tasks.sentences import Questions, Sentences, Sst2, Trec
from attnlab.tasks.spoken import Sounds, Spoken, Tones
from attnlab.tasks.text import Shakespeare, Text
from attnlab.tasks.translation import Multi30k, Parallel

__all__ = [
    "TASKS", "Associations", "Boxes", "CMUdict", "Cells", "Classes", "Convolution", "Copy", "Cora", "Dates", "Discs",
    "DocumentPairs", "Documents", "FashionMNIST", "Figures", "Filtered", "Frames", "Generation", "Image", "Images",
    "Induction", "ListOps", "Multi30k", "Nodes", "Pairs", "Parallel", "Pathfinder", "Problem", "Questions", "Recall",
    "Reverse", "Scan", "Sentences", "Shakespeare", "Sigmorphon", "Sounds", "Spoken", "Sst2", "Task", "Text", "Tokens",
    "Tones", "Trec",
]  # fmt: skip

TASKS: dict[str, Task] = Registry("TASKS")
TASKS |= {
    "dates": Dates(),
    "reverse": Reverse(),
    "copy": Copy(),
    "cmudict": CMUdict(),
    "sigmorphon": Sigmorphon(),
    "scan": Scan(),
    "multi30k": Multi30k(),
    "parallel": Parallel(),
    "shakespeare": Shakespeare(),
    "text": Text(),
    "associations": Associations(),
    "recall": Recall(),
    "induction": Induction(),
    "listops": ListOps(),
    "pathfinder": Pathfinder(),
    "documents": Documents(),
    "document-pairs": DocumentPairs(),
    "trec": Trec(),
    "sst2": Sst2(),
    "questions": Questions(),
    "sentences": Sentences(),
    "fashion-mnist": FashionMNIST(),
    "images": Images(),
    "figures": Figures(),
    "generation": Generation(),
    "convolution": Convolution(),
    "cells": Cells(),
    "boxes": Boxes(),
    "discs": Discs(),
    "cora": Cora(),
    "nodes": Nodes(),
    "spoken": Spoken(),
    "sounds": Sounds(),
    "tones": Tones(),
}
