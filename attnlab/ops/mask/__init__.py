"""Masks: predicates of positions.

A mask answers, for query positions `i [T]` and key positions `j [S]`, which pairs may meet: `mask(i, j) -> bool [T S]`.
Masks compose by `&`, `|`, `~`, are pytrees (their arrays are traced), and become an array only for the block asked for.
"""

from attnlab.ops.mask.array import Edges, KeyPadding, QueryPadding, Segments
from attnlab.ops.mask.base import And, Mask, Not, Or, Places
from attnlab.ops.mask.formula import Causal, Dilated, Full, Global, Keys, Prefix, Window
from attnlab.ops.mask.listed import EdgeList
from attnlab.ops.mask.random_blocks import RandomBlocks

__all__ = [
    "And",
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
    "Places",
    "Prefix",
    "QueryPadding",
    "RandomBlocks",
    "Segments",
    "Window",
]
