"""Recurrent sequence to sequence: by the last state alone (Sutskever et al. 2014), or with attention to the source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from jaxtyping import PRNGKeyArray

from attnlab.mechanisms import Mechanism, Softmax
from attnlab.models.config import DTYPES, check_dropout, check_names, check_shape, check_sizes
from attnlab.models.seq2seq_network import Seq2SeqNetwork
from attnlab.modules.attention import check_heads
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
class Seq2Seq:
    """A recurrent encoder and a recurrent decoder, of `layers` each, with or without attention.

    `attention` says when a decoder looks at the source, and what it does with the context c_t that it reads there:
    - None: never. It knows the encoder's last state, given `context` "once", as its first (Sutskever et al. 2014), or
      at "every" step as an input besides (Cho et al. 2014);
    - "bahdanau": before each step, by its previous state; c_t is an input of the step and of the deep output after it
      (Bahdanau, Cho, Bengio 2015, eq. 4-6), which is of the new state and as wide;
    - "luong": after each step, by its current state; scores are of h̃_t = tanh([c_t ; h_t] W_c). With `input_feeding`
      h̃_t is an input of the next step (Luong, Pham, Manning 2015, eq. 5 and section 3.3).
    `mechanism` is what mixes, with `heads`: any that can attend. None is softmax with the paper's score: additive, or
    general. `Softmax(score=…)` takes any of `attnlab.SCORES`; `Local` is local-m, `LocalP` local-p.

    `bridge` says where the decoder starts: at zeros ("none"), at the encoder's last state ("last"), or at a layer on
    top of it ("project"). `embedding` is the width of symbols, None that of the states; `bidirectional` is of the
    encoder, each way with states of `width`; `dropout` is on symbols, between layers and before the scores; `tied`
    scores against the target's embedding; `scale_embeddings` reads symbols times the root of their width, as
    Transformers do; `dtype` is what it computes in; parameters are float32, and states at least.

    Raises ValueError naming the field for what cannot work, and for what would not be looked at.
    """

    width: int = 64
    embedding: int | None = None
    layers: int = 1
    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    bidirectional: bool = False
    attention: Literal["bahdanau", "luong"] | None = None
    mechanism: Mechanism | None = None
    heads: int = 1
    input_feeding: bool = False
    context: Literal["once", "every"] = "once"
    bridge: Literal["none", "last", "project"] = "project"
    dropout: float = 0.0
    tied: bool = False
    scale_embeddings: bool = True
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"

    def __post_init__(self):
        known = {name: names for name, names in CHOICES.items() if (name, self.attention) != ("attention", None)}
        check_names(self, **known)
        check_heads(self.width, self.heads, self.heads)
        check_sizes(self, "width", "embedding", "layers")
        check_dropout(self)
        if self.tied and self.symbols != self.width:
            raise ValueError(
                f"model.tied=True: model.embedding={self.embedding} must be model.width={self.width}, against which "
                "states are scored"
            )
        self._check_unread()
        self._check_source()
        self._check_mechanism()

    @property
    def line(self) -> str:
        """A line about this one, in a list of several."""
        told = {None: "by the encoder's last state alone", "bahdanau": "attention by the state before each step"}
        return f"recurrent, {told.get(self.attention, 'attention by the state after each step')}"

    @property
    def symbols(self) -> int:
        """The width of embedded symbols."""
        return self.width if self.embedding is None else self.embedding

    @property
    def memory(self) -> int:
        """The width of what the encoder leaves of a symbol."""
        return 2 * self.width if self.bidirectional else self.width

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """The mechanism of its attention, where it has one."""
        score = additive if self.attention == "bahdanau" else general
        return {} if self.attention is None else {"cross": self.mechanism or Softmax(score=score)}

    def watched(self, watch) -> Seq2Seq:
        """The same with its mechanism, where it has one, put through `watch`."""
        return replace(self, mechanism=watch(self.attentions["cross"])) if self.attentions else self

    def create(self, key: PRNGKeyArray, shape: Any) -> Seq2SeqNetwork:
        """A new network for sequences of that shape (`attnlab.tasks.Pairs`)."""
        check_shape(self, shape, "source_vocabulary", "target_vocabulary")
        return Seq2SeqNetwork(key, self, shape)

    def _check_unread(self) -> None:
        """Refuse what would make no difference."""
        for name, unset, reads, where in (
            ("mechanism", None, self.attention is not None, "model.attention=luong or bahdanau"),
            ("heads", 1, self.attention is not None, "model.attention=luong or bahdanau"),
            ("input_feeding", False, self.attention == "luong", "model.attention=luong (bahdanau feeds its context)"),
            ("context", "once", self.attention is None, "model.attention=none"),
        ):
            if (value := getattr(self, name)) != unset and not reads:
                raise ValueError(f"model.{name}={value} is only for {where}, not for {self.attention or 'none'}")

    def _check_source(self) -> None:
        """Refuse a decoder that knows nothing of the source, and a state of the wrong width."""
        if self.bridge == "none" and self.attention is None and self.context == "once":
            raise ValueError("model.bridge=none leaves the decoder without the source: choose last or project")
        if self.bridge == "last" and self.bidirectional:
            raise ValueError(
                f"model.bridge=last: the encoder's state of both ways has {self.memory} components, the decoder's "
                f"model.width={self.width}; choose model.bridge=project"
            )

    def _check_mechanism(self) -> None:
        if not isinstance(self.mechanism, Mechanism | None):
            raise ValueError(f"model.mechanism={self.mechanism!r} must be a mechanism, as those of attnlab.MECHANISMS")
        for mechanism in self.attentions.values():
            if not mechanism.attends:
                raise ValueError(
                    f"model.mechanism={mechanism} reads the past only: it cannot read a source; "
                    "use such as model.mechanism=softmax"
                )
            if not mechanism.rowwise:
                raise ValueError(
                    f"model.mechanism={mechanism} mixes the queries, so that later targets would show in earlier ones; "
                    "use such as model.mechanism=softmax"
                )
