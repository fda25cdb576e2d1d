"""Masks as predicates of positions.

For query positions `i [T]` and key positions `j [S]`, `mask(i, j) -> bool [T S]` is True for each pair in which the
query may attend to the key. Masks compose with `&`, `|` and `~`. They are pytrees, so their arrays are traced. A mask
becomes an array only for the block of pairs that is asked for.
"""

from attnlab.ops.mask.array import Edges, KeyPadding, QueryPadding, Segments
from attnlab.ops.mask.base import And, ArrayOrNumpy, Mask, Not, Or
from attnlab.ops.mask.formula import Causal, Dilated, Full, Global, Keys, Prefix, Window
from attnlab.ops.mask.listed import EdgeList
from attnlab.ops.mask.random_blocks import RandomBlocks

__all__ = [
    "And",
    "ArrayOrNumpy",
    "Causal",
    "Dilated",
    "EdgeList",
    "Edges",
    "Full",
    "Global",
    "KeyPadding",
    "Keys",
    "Mask",
    "Not",
    "Or",
    "Prefix",
    "QueryPadding",
    "RandomBlocks",
    "Segments",
    "Window",
]
