"""From a model that scores the next symbol to an answer: over `step(state, token) -> (scores, state)`."""

from attnlab.decoding.base import Decoded, Decoder
from attnlab.decoding.beam import Beam
from attnlab.decoding.greedy import Greedy, greedy
from attnlab.decoding.sample import Sample
from attnlab.registry import Registry

DECODERS: dict[str, Decoder] = Registry("DECODERS")
DECODERS |= {"greedy": Greedy(), "beam": Beam(), "sample": Sample()}

__all__ = ["DECODERS", "Beam", "Decoded", "Decoder", "Greedy", "Sample", "greedy"]
