"""Interfaces between text and the batches of a trained model: inputs, answers and attention maps.

Importing this module does not import jax.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

from attnlab.tasks.base.example import ModelExample, TaskMaps
from attnlab.tasks.base.shapes import Tokens

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Array, Float, PRNGKeyArray, PyTree

    from attnlab.decoding import Search

Batch = dict[str, Any]  # arrays by name: numpy arrays on the host, JAX arrays in traced functions


class TextInterface(ABC):
    """Converts between text and the batches of a trained model. It needs none of the data the model was trained on."""

    shape: Any
    """The shape of the task (`Pairs`, `Tokens`, …), from which a model is built."""
    decodes: bool = False
    """Whether answers are decoded symbol by symbol. The interface is then a `DecodedInterface`."""
    continues: bool = False
    """Whether the input is a prompt that is continued symbol by symbol. It is then a `ContinuedInterface`."""
    maps: ClassVar[TaskMaps | None] = None
    """The attention maps that a run of the task shows, or None."""

    @property
    @abstractmethod
    def vocabulary(self) -> dict[str, object]:
        """The meaning of ids, and whatever else `Task.text_interface` reads, in JSON types.

        It is stored in `vocabulary.json`.
        """

    @abstractmethod
    def loss(self, model: PyTree, batch: Batch, key: PRNGKeyArray | None) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Computes the loss of a batch. The function is traceable.

        Args:
            model: The model.
            batch: A training or evaluation batch.
            key: The key for dropout. None disables dropout.

        Returns:
            The mean loss, and further scalars by name.
        """

    @abstractmethod
    def answer(self, model: PyTree, batch: Batch) -> Batch:
        """Computes the model's answer to an evaluation batch. The function is traceable.

        If answers are decoded symbol by symbol, it also takes an argument `decoder`. None is the greedy decoder.
        """

    @abstractmethod
    def encode_prompt(self, text: str) -> Batch:
        """Returns one input as a batch of size 1.

        Raises:
            DataError: If the text has symbols that were never seen in training, or is not a valid input. The message
                names them.
        """

    @abstractmethod
    def format_answer(self, answer: Batch) -> str:
        """Returns the answer to a batch of size 1 as text."""

    @abstractmethod
    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the symbols of row 0 under "source" and "target", to label the axes of an attention map."""

    def answer_line(self, answer: Batch) -> str:
        """Returns the answer to a batch of size 1 as one line."""
        return one_line(self.format_answer(answer))

    def model_inputs(self, batch: Batch) -> tuple[np.ndarray | Array, ...]:
        """Returns the inputs of a model for a batch, with the batch axis. Only for tasks with `maps`."""
        raise NotImplementedError(f"{type(self).__name__} has no attention maps")

    def example(self, batch: Batch, answer: Batch | None = None) -> ModelExample:
        """Returns a batch of size 1 as a model reads it, with the axes of the attention maps.

        Only for tasks with `maps`.

        Args:
            batch: The batch.
            answer: The model's answer to it. It is required if `maps.answered`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no attention maps")


class DecodedInterface(TextInterface):
    """An interface whose answers are decoded symbol by symbol."""

    @property
    def decoder(self) -> Search | None:
        """The default decoder. None is the greedy decoder."""
        return None

    @abstractmethod
    def answers(
        self, model: PyTree, batch: Batch, decoder: Search | None = None, keys: PRNGKeyArray | None = None
    ) -> Batch:
        """Returns {"tokens": [B N T], "scores": [B N]}: the N answers of a decoder, the best first.

        Args:
            model: The model.
            batch: {"source": [B S]}.
            decoder: The decoder. None is the default.
            keys: The keys for decoders that sample, one for each example [B], or None.
        """


class ContinuedInterface(DecodedInterface):
    """An interface whose input is a prompt that is continued symbol by symbol."""

    continues = True
    shape: Tokens

    @property
    @abstractmethod
    def reads(self) -> int:
        """The largest number of symbols of a prompt that are read."""


def is_decoded(interface: TextInterface) -> TypeGuard[DecodedInterface]:
    """Returns whether answers are decoded symbol by symbol."""
    return interface.decodes or interface.continues


def is_continued(interface: TextInterface) -> TypeGuard[ContinuedInterface]:
    """Returns whether the input is a prompt that is continued symbol by symbol."""
    return interface.continues


def one_line(text: str) -> str:
    r"""Replaces each line break with a space, because byte vocabularies can spell line breaks.

    >>> one_line("a\r\nb\nc")
    'a b c'
    """
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
