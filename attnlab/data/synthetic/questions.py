"""Questions by a small grammar, and what kind of answer each asks for."""

import math
import re

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.rng import generator
from attnlab.data.text.example import Example, Parts

_SLOTS = {
    "human": "baker captain doctor farmer king painter pilot queen singer teacher",
    "thing": "bell boat book bridge clock garden ladder letter lamp picture statue wagon",
    "did": "built broke bought drew found hid lost moved sold stole",
    "do": "build break buy draw find hide lose move sell steal",
    "like": "big broken famous golden heavy old red secret small wooden",
    "place": "city country harbour island street village",
    "span": "century day hour month week year",
}
_WORDS = {slot: words.split() for slot, words in _SLOTS.items()}
_WORDS["things"] = [f"{word}s" for word in _WORDS["thing"]]
_SLOT = re.compile(r"\{(\w+)\}")
# Most begin with a word that questions of other kinds begin with too: one has to read on.
_KINDS = {
    "person": (
        "who {did} the {like} {thing} of the {human} ?",
        "which {human} {did} the {like} {thing} ?",
        "what {human} {did} the {thing} of the {human} ?",
    ),
    "place": (
        "where did the {human} {do} the {like} {thing} ?",
        "in which {place} did the {human} {do} the {thing} ?",
        "what {place} has the {like} {thing} ?",
    ),
    "time": (
        "when did the {human} {do} the {like} {thing} ?",
        "in which {span} did the {human} {do} the {thing} ?",
        "what {span} saw the {human} {do} the {thing} ?",
    ),
    "number": (
        "how many {things} did the {human} {do} ?",
        "what number of {like} {things} did the {human} {do} ?",
    ),
    "reason": (
        "why did the {human} {do} the {like} {thing} ?",
        "what made the {human} {do} the {thing} ?",
    ),
    "meaning": (
        "what is a {like} {thing} ?",
        "what did the {human} mean by a {like} {thing} ?",
        "how would the {human} describe the {thing} ?",
    ),
}
KINDS = tuple(_KINDS)


def draw(seed: int, sizes: dict[str, int]) -> Parts:
    """Different questions for each part, each the source of an example whose target is its kind; kinds take turns.

    A pure function of its arguments. Raises DataError for more questions than leave each kind half of its own.
    """
    random = generator(seed)
    wanted, most = sum(sizes[part] for part in PARTS), len(KINDS) * min(map(_count, KINDS)) // 2
    if wanted > most:
        raise DataError(f"{wanted} different questions are asked for, and the grammar gives up to {most}")
    found: dict[str, str] = {}
    while len(found) < wanted:
        templates = _KINDS[kind := KINDS[len(found) % len(KINDS)]]
        found.setdefault(_written(templates[random.integers(len(templates))], random), kind)
    examples = iter([Example(question, (kind,)) for question, kind in found.items()])
    return {part: [next(examples) for _ in range(sizes[part])] for part in PARTS}


def _count(kind: str) -> int:
    """How many questions of a kind there are."""
    return sum(math.prod(len(_WORDS[slot]) for slot in _SLOT.findall(template)) for template in _KINDS[kind])


def _written(template: str, random: np.random.Generator) -> str:
    return _SLOT.sub(lambda match: _WORDS[match[1]][random.integers(len(_WORDS[match[1]]))], template)
