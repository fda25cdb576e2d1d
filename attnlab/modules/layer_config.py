"""The configuration of residual layers, which creates their parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from flax import nnx
from jaxtyping import PRNGKeyArray

from attnlab.documented import Documented
from attnlab.mechanisms.base import Mechanism
from attnlab.modules.attention import Attention
from attnlab.modules.attention_layer import AttentionLayer
from attnlab.modules.dense import Dense
from attnlab.modules.feedforward import FeedForward
from attnlab.modules.latent import Latent
from attnlab.modules.latent_attention import LatentAttention
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.norm import NORMS
from attnlab.modules.residual import Residual


@dataclass(frozen=True)
class LayerConfig(metaclass=Documented):
    """The configuration that all layers of a model share."""

    width: int
    """Size of the vectors."""
    heads: int
    """Number of query heads."""
    feedforward: int
    """Width of the hidden layer of the feed-forward block. 0: no feed-forward block."""
    activation: str
    """Activation of the feed-forward block: a key of `attnlab.ops.layer.ACTIVATIONS` or `GATED_ACTIVATIONS`."""
    norm: str
    """Kind of normalisation, a key of `attnlab.modules.norm.NORMS`."""
    norm_first: bool
    """True: pre-norm. False: post-norm."""
    dropout: float
    """Dropout probability."""
    key_heads: int | None = None
    """Number of key and value heads. None: `heads`."""
    biases: bool = True
    """False: linear maps have no bias."""
    initialiser: str = "xavier"
    """Initial distribution of weights, a key of `attnlab.modules.dense.INITIALISERS`."""
    norm_eps: float = 1e-6
    """The ε that the norms add to the variance."""
    norm_output: bool = False
    """True: normalise the output of each sublayer, before it is added."""
    parallel: bool = False
    """True: the feed-forward block reads the same input as the attention, and both are added together."""
    layer: AttentionLayer = MultiHead()
    """The attention layer that contains the mechanism: projections, gate, norms, head widths."""

    def norm_layer(self) -> nnx.Module:
        """Create a norm."""
        return NORMS[self.norm](self.width, self.norm_eps)

    def final_norm(self) -> nnx.Module | None:
        """Create the norm after the last layer, or None if the layers normalise their sums."""
        return self.norm_layer() if self.norm_first or self.norm_output else None

    @property
    def dense(self) -> Callable[..., Dense]:
        """The constructor of linear maps, with this bias and initialiser."""
        return partial(Dense, bias=self.biases, initialiser=self.initialiser)

    def attention(self, key: PRNGKeyArray, mechanism: Mechanism) -> Attention:
        """Create an attention."""
        if isinstance(self.layer, Latent):
            return LatentAttention(key, self.width, self.heads, mechanism, self.layer, self.dense, self.norm_eps)
        assert isinstance(self.layer, MultiHead), self.layer
        return Attention(key, self.width, self.heads, mechanism, self.key_heads, self.dense, self.layer, self.norm_eps)

    def cross_attention(self, key: PRNGKeyArray, mechanism: Mechanism) -> Attention:
        """Create an attention to another sequence."""
        return replace(self, layer=self.layer.for_context).attention(key, mechanism)

    def forward(self, key: PRNGKeyArray) -> tuple[FeedForward | None, Residual | None]:
        """Create a feed-forward block and the residual around it.

        There is no block if `feedforward` is 0, and no residual of its own if `parallel`.
        """
        if self.feedforward == 0:
            return None, None
        layer = FeedForward(key, self.width, self.feedforward, self.activation, self.dropout, self.dense)
        return layer, None if self.parallel else self.residual()

    def residual(self) -> Residual:
        """Create the residual connection around a sublayer, with its norms."""
        return Residual(self.norm_layer, first=self.norm_first, output=self.norm_output, rate=self.dropout)
