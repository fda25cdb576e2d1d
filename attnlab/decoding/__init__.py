"""Decoding: search for an output sequence with a model that scores the next symbol.

Every search works with a function `step(state, token) -> (scores, state)`. `DECODERS` maps names to default instances.
"""

from attnlab.decoding.base import DecodeProblem, Search, SearchResult
from attnlab.decoding.beam import Beam
from attnlab.decoding.greedy import Greedy, greedy
from attnlab.decoding.sample import Sample
from attnlab.registry import Registry

DECODERS: dict[str, Search] = Registry("DECODERS")
DECODERS |= {"greedy": Greedy(), "beam": Beam(), "sample": Sample()}

__all__ = ["DECODERS", "Beam", "DecodeProblem", "Greedy", "Sample", "Search", "SearchResult", "greedy"]
