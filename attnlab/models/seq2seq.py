"""Recurrent sequence-to-sequence models, without attention (Sutskever et al. 2014) or with attention to the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxtyping import PRNGKeyArray

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism, Softmax
from attnlab.models.checks import DTYPES, check_dropout, check_names, check_sizes
from attnlab.models.seq2seq_network import Seq2SeqNetwork
from attnlab.models.shapes import Shape, TokenPairShape, check_shape
from attnlab.modules.attention_layer import check_heads
from attnlab.ops.cell import CELLS
from attnlab.ops.score import additive, general

CHOICES = {
    "cell": tuple(CELLS),
    "attention": ("bahdanau", "luong"),
    "context": ("once", "every"),
    "bridge": ("none", "last", "project"),
    "dtype": DTYPES,
}


@dataclass(frozen=True)
class Seq2Seq(metaclass=Documented):
    """Configuration of a recurrent encoder and a recurrent decoder, with or without attention.

    `attention` selects when the decoder attends to the source and how it uses the context c_t:

    - None: It does not attend. It receives the encoder's last state: with `context="once"` as its initial state
      (Sutskever et al. 2014), with `context="every"` also as an input of every step (Cho et al. 2014).
    - "bahdanau": It attends before each step, with its previous state. c_t is an input of the step and of the deep
      output after it (Bahdanau, Cho, Bengio 2015, eq. 4-6). The deep output takes the new state and has its width.
    - "luong": It attends after each step, with its current state. Logits are computed from
      h̃_t = tanh([c_t ; h_t] W_c) (Luong, Pham, Manning 2015, eq. 5).

    Raises:
        ValueError: A field, or a combination of fields, is invalid, or a field would have no effect. The message names
            the field.
    """

    width: int = 64
    """Size of the recurrent states."""
    embedding: int | None = None
    """Size of the symbol embeddings. None: `width`."""
    layers: int = 1
    """Number of recurrent layers of the encoder, and of the decoder."""
    cell: Literal["rnn", "gru", "lstm", "rg-lru"] = "lstm"
    """Kind of recurrent cell."""
    bidirectional: bool = False
    """True: the encoder reads the source in both directions, each with states of size `width`."""
    attention: Literal["bahdanau", "luong"] | None = None
    """When and how the decoder attends to the source (see the class). None: no attention."""
    mechanism: Mechanism | None = None
    """The attention mechanism: any that supports cross-attention and does not mix queries.

    None: softmax with the score of the paper, which is additive for "bahdanau" and general for "luong".
    `Softmax(score=…)` takes any of `attnlab.SCORES`. `Local` is local-m and `LocalP` is local-p of Luong et al.
    """
    heads: int = 1
    """Number of attention heads; must divide `width`."""
    input_feeding: bool = False
    """True: h̃_t is also an input of the next step (Luong et al. 2015, section 3.3). Only for "luong"."""
    context: Literal["once", "every"] = "once"
    """Without attention: whether the decoder gets the encoder's last state once or as an input of every step."""
    bridge: Literal["none", "last", "project"] = "project"
    """Initial state of the decoder: zeros ("none"), the encoder's last state ("last"), or a layer on it ("project")."""
    dropout: float = 0.0
    """Dropout probability, applied to symbols, between layers and before the output."""
    tied: bool = False
    """True: compute logits as products with the target embedding. The embedding must have size `width`."""
    scale_embeddings: bool = True
    """True: multiply embeddings by the square root of their size, as Transformers do."""
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"
    """Data type of the computation. Parameters are float32, and states at least float32."""

    def __post_init__(self):
        known = {name: names for name, names in CHOICES.items() if (name, self.attention) != ("attention", None)}
        check_names(**{name: (getattr(self, name), names) for name, names in known.items()})
        check_heads(self.width, self.heads, self.heads)
        check_sizes(width=self.width, embedding=self.embedding, layers=self.layers)
        check_dropout(self.dropout)
        if self.tied and self.symbols != self.width:
            raise ValueError(
                f"model.tied=True needs model.embedding={self.embedding} to be equal to model.width={self.width}, the "
                "size of the vectors that it is multiplied with"
            )
        self._check_unread()
        self._check_source()
        self._check_mechanism()

    @property
    def line(self) -> str:
        """A one-line description for a list of models."""
        cell = f"{'bidirectional ' if self.bidirectional else ''}{self.cell.upper()}"
        use = {
            None: "without attention: the decoder reads the encoder's last state",
            "bahdanau": "with attention before each step of the decoder (Bahdanau et al. 2015)",
            "luong": "with attention after each step of the decoder (Luong et al. 2015)",
        }
        return f"Recurrent encoder-decoder ({cell}) {use[self.attention]}."

    @property
    def symbols(self) -> int:
        """The size of the symbol embeddings."""
        return self.width if self.embedding is None else self.embedding

    @property
    def encoder_size(self) -> int:
        """The size of the encoder's output for a symbol."""
        return 2 * self.width if self.bidirectional else self.width

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """The mechanism of the cross-attention, by role. Empty without attention."""
        score = additive if self.attention == "bahdanau" else general
        return {} if self.attention is None else {"cross": self.mechanism or Softmax(score=score)}

    def create(self, key: PRNGKeyArray, shape: Shape) -> Seq2SeqNetwork:
        """Create a network for sequences of `shape` (`attnlab.tasks.Pairs`)."""
        shape = check_shape(self, shape, TokenPairShape)
        return Seq2SeqNetwork(key, self, shape)

    def _check_unread(self) -> None:
        """Raise ValueError if a field is set but would have no effect."""
        for name, unset, reads, where in (
            ("mechanism", None, self.attention is not None, "model.attention=luong or bahdanau"),
            ("heads", 1, self.attention is not None, "model.attention=luong or bahdanau"),
            (
                "input_feeding",
                False,
                self.attention == "luong",
                "model.attention=luong (bahdanau always feeds its context)",
            ),
            ("context", "once", self.attention is None, "model.attention=none"),
        ):
            if (value := getattr(self, name)) != unset and not reads:
                raise ValueError(f"model.{name}={value} needs {where}, got model.attention={self.attention or 'none'}")

    def _check_source(self) -> None:
        """Raise ValueError if the decoder gets nothing of the source, or an initial state of the wrong size."""
        if self.bridge == "none" and self.attention is None and self.context == "once":
            raise ValueError("model.bridge=none gives the decoder no input from the source; use last or project")
        if self.bridge == "last" and self.bidirectional:
            raise ValueError(
                "model.bridge=last needs states of equal size, but the bidirectional encoder's have "
                f"{self.encoder_size} components and the decoder's have model.width={self.width}; "
                "use model.bridge=project"
            )

    def _check_mechanism(self) -> None:
        """Raise ValueError if the mechanism does not support cross-attention."""
        if not isinstance(self.mechanism, Mechanism | None):
            raise ValueError(
                f"model.mechanism={self.mechanism!r} must be a mechanism, for example MECHANISMS['softmax']"
            )
        for mechanism in self.attentions.values():
            if not mechanism.traits.non_causal:
                raise ValueError(
                    f"model.mechanism={mechanism} supports only causal attention, but attention to the source sees all "
                    "symbols; use for example model.mechanism=softmax"
                )
            if mechanism.traits.self_only:
                raise ValueError(
                    f"model.mechanism={mechanism} attends from a sequence to itself only, but attention to the source "
                    "reads another one; use for example model.mechanism=softmax"
                )
            if not mechanism.traits.row_independent:
                raise ValueError(
                    f"model.mechanism={mechanism} mixes queries, so that outputs would depend on later targets; "
                    "use for example model.mechanism=softmax"
                )
