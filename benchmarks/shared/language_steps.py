"""Training steps of language models on random symbols, for timings next to other libraries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.analysis.measure import Program
from attnlab.bench.steps import dispatch
from attnlab.models import Language
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.text.continuation import LanguageModelData
from attnlab.training.config import Train
from attnlab.training.shapes import Steps
from attnlab.training.trainer import DISPATCH, Trainer

RATE, DECAY, BETAS, CLIP = 1e-3, 0.1, (0.9, 0.99), 1.0


@dataclass(frozen=True)
class Size:
    """The size of a model and of its batches."""

    width: int
    """Width of the model, a multiple of `heads`."""
    batch: int
    """Number of sequences in a batch."""
    length: int
    """Length of a sequence in symbols."""
    symbols: int = 100
    """Number of symbols."""
    layers: int = 4
    """Number of layers."""
    heads: int = 4
    """Number of heads."""


SIZES = {
    "tiny": Size(64, 32, 24),
    "small": Size(128, 12, 64),
    "wide": Size(256, 8, 256),
    "long": Size(128, 4, 512),
    "words": Size(512, 8, 128, 8000),
}
"""The sizes that are measured. `small` is nanoGPT's recipe for a CPU."""


class RandomSymbols(LanguageModelData):
    """The shape and the loss of a language model, without data."""

    def __init__(self, size: Size):
        self.shape = Tokens(size.symbols, size.length)
        self.smoothing = 0.0


def random_symbols(size: Size) -> np.ndarray:
    """Return sequences with the symbol after each of them, [DISPATCH, batch, length + 1] int32."""
    shape = (DISPATCH, size.batch, size.length + 1)
    return np.random.default_rng(0).integers(3, size.symbols, shape, dtype=np.int32)


def language_steps(config: Language, size: Size) -> Program:
    """Return a program that makes `DISPATCH` training steps of one lane in one dispatch, as `attnlab run` does.

    A step is the loss, the gradients, their norm clipped at 1, and AdamW, in float32.

    Args:
        config: The model's config.
        size: The sizes of the batches.
    """
    problem, drawn = RandomSymbols(size), random_symbols(size)
    train = Train(
        steps=10**6, batch_size=size.batch, learning_rate=RATE, schedule="constant", warmup=0, clip=CLIP, seeds=1,
        weight_decay=DECAY, beta1=BETAS[0], beta2=BETAS[1],
    )  # fmt: skip
    trainer = Trainer(lambda key: config.create(key, problem.shape), problem, train)
    arrays = {"tokens": drawn[:, :, :-1], "answers": drawn[:, :, 1:], "scored": np.ones(drawn[:, :, 1:].shape, bool)}
    shapes = {name: x.shape[1:] for name, x in arrays.items()}
    batches = Steps({name: x[:, None] for name, x in arrays.items()}, np.zeros(DISPATCH, np.int32), (shapes,))
    return dispatch(trainer, batches)
