"""The configuration of multi-head latent attention."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.pattern_softmax import PatternSoftmax
from attnlab.modules.attention_layer import AttentionLayer, check_heads, check_whole
from attnlab.ops.score import dot, scaled_dot


@dataclass(frozen=True)
class Latent(AttentionLayer):
    """Multi-head latent attention, MLA: keys and values are linear maps of one small vector (DeepSeek-AI 2024).

    c_t = norm(x_t W_c), k_t = [c_t W_k ; rotated(x_t W_r)] and v_t = c_t W_v per head, where x_t W_r is shared by all
    heads. Decoding caches c_t and the rotated vector only, `rank` + `rotary_width` numbers per token. It multiplies
    queries by W_kᵀ and outputs by W_v instead of computing keys and values, which gives the same result.

    Raises:
        ValueError: A size is out of range. The message names the field.
    """

    rank: int = 32
    """Width of c, at most the model's width."""
    query_rank: int | None = None
    """Width of the vector from which queries are computed, with a norm as for c. None: directly from the input."""
    rotary_width: int = 8
    """Number of components of a key that positions rotate. The heads share them."""
    head_width: int | None = None
    """Number of components of a key that differ by head. None: the model's width divided by the number of heads."""
    value_width: int | None = None
    """Width of a value. None: `head_width`."""

    def __post_init__(self):
        sizes = {"rank": self.rank, "query_rank": self.query_rank}
        sizes |= {"head_width": self.head_width, "value_width": self.value_width}
        check_whole(**sizes)
        if type(self.rotary_width) is not int or not 0 <= self.rotary_width <= 2**20:
            raise ValueError(f"rotary_width={self.rotary_width} must be at least 0, and at most {2**20}")

    def split(self, width: int, heads: int) -> tuple[int, int]:
        """Return how many components of a key differ by head, and how many are shared and rotated."""
        return self.head_width or width // heads, self.rotary_width

    def widths(self, width: int, heads: int) -> tuple[int, int]:
        """Return the widths K of a key and V of a value."""
        own, shared = self.split(width, heads)
        return own + shared, self.value_width or own

    def rotated(self, width: int, heads: int) -> int:
        """Return `rotary_width`."""
        return self.rotary_width

    def check(self, width: int, heads: int, key_heads: int) -> None:
        """Check the ranks, and that there is no other kind of shared keys."""
        check_heads(width, heads, key_heads, self.head_width is None)
        for name, rank in {"rank": self.rank, "query_rank": self.query_rank}.items():
            if rank is not None and rank > width:
                raise ValueError(f"{name}={rank} must be at most model.width={width}")
        if key_heads != heads:
            raise ValueError(f"model.key_heads={key_heads} must be model.heads={heads} for latent attention")

    def refusal(self, mechanism: Mechanism, role: str) -> str | None:
        """Return None for softmax attention with products of queries and keys as scores."""
        if isinstance(mechanism, PatternSoftmax) and mechanism.score in (dot, scaled_dot):
            return None
        return f"latent attention needs softmax with products of queries and keys as scores, not {mechanism}"

    @property
    def for_context(self) -> Latent:
        """This layer itself."""
        return self
