"""Tasks: data, batches, the loss and the metrics. Importing this package does not import jax."""

from attnlab.registry import Registry
from attnlab.tasks.base.shapes import Classes, Frames, Image, Pairs, Tokens
from attnlab.tasks.base.task import Task, TaskData
from attnlab.tasks.graphs.nodes import Cora, Nodes
from attnlab.tasks.speech.spoken import Sounds, Spoken, Tones
from attnlab.tasks.synthetic.associations import Associations
from attnlab.tasks.synthetic.copying import SelectiveCopying
from attnlab.tasks.synthetic.dates import Dates
from attnlab.tasks.synthetic.dyck import Dyck
from attnlab.tasks.synthetic.filtering import Convolution, ConvolutionShape
from attnlab.tasks.synthetic.group_words import S3, S5, GroupWords, ModularSum, Parity
from attnlab.tasks.synthetic.induction import Induction
from attnlab.tasks.synthetic.listops import ListOps
from attnlab.tasks.synthetic.needle import Needle
from attnlab.tasks.synthetic.pathfinder import Pathfinder
from attnlab.tasks.synthetic.recall import Recall
from attnlab.tasks.synthetic.reverse import Copy, Reverse
from attnlab.tasks.text.documents import DocumentPairs, Documents
from attnlab.tasks.text.g2p import CMUdict, Sigmorphon
from attnlab.tasks.text.scan import Scan
from attnlab.tasks.text.sentences import Questions, Sentences, Sst2, Trec
from attnlab.tasks.text.text import Shakespeare, Text
from attnlab.tasks.text.translation import Multi30k, Parallel
from attnlab.tasks.vision.detection import Boxes, Cells, Discs
from attnlab.tasks.vision.generation import Generation
from attnlab.tasks.vision.images import FashionMNIST, Figures, Images

__all__ = [
    "S3",
    "S5",
    "TASKS",
    "Associations",
    "Boxes",
    "CMUdict",
    "Cells",
    "Classes",
    "Convolution",
    "ConvolutionShape",
    "Copy",
    "Cora",
    "Dates",
    "Discs",
    "DocumentPairs",
    "Documents",
    "Dyck",
    "FashionMNIST",
    "Figures",
    "Frames",
    "Generation",
    "GroupWords",
    "Image",
    "Images",
    "Induction",
    "ListOps",
    "ModularSum",
    "Multi30k",
    "Needle",
    "Nodes",
    "Pairs",
    "Parallel",
    "Parity",
    "Pathfinder",
    "Questions",
    "Recall",
    "Reverse",
    "Scan",
    "SelectiveCopying",
    "Sentences",
    "Shakespeare",
    "Sigmorphon",
    "Sounds",
    "Spoken",
    "Sst2",
    "Task",
    "TaskData",
    "Text",
    "Tokens",
    "Tones",
    "Trec",
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
    "parity": Parity(),
    "modular-sum": ModularSum(),
    "s3": S3(),
    "s5": S5(),
    "group-words": GroupWords(),
    "dyck": Dyck(),
    "selective-copying": SelectiveCopying(),
    "needle": Needle(),
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
