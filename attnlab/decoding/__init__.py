"""From a model that scores the next symbol to an answer: over `step(state, token) -> (scores, state)`."""

from attnlab.decoding.base import Search, SearchResult
from attnlab.decoding.beam import Beam
from attnlab.decoding.greedy import Greedy, greedy
from attnlab.decoding.sample import Sample
from attnlab.registry import Registry

DECODERS: dict[str, Search] = Registry("DECODERS")
DECODERS |= {"greedy": Greedy(), "beam": Beam(), "sample": Sample()}

__all__ = ["DECODERS", "Beam", "Greedy", "Sample", "Search", "SearchResult", "greedy"]
