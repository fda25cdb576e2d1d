"""Generates command lines from the options of the commands, and experiments in JSON. Some contain random errors.

hypothesis draws only the texts. A seeded random generator decides the rest, because drawing every word with hypothesis
would take ten times as long.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from hypothesis import strategies as st

from attnlab import registry
from attnlab.cli.parser import Parser
from attnlab.cli.verbs import VERBS
from attnlab.decoding import Beam
from attnlab.lab.planning.summary import flat
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Experiment, change
from attnlab.models import Seq2Seq
from tests.small import EXPERIMENT

FILES = ["", "small.py", "one.py", "none.py", "broken.py", ".", "..", "runs", "runs/old", "/dev/null", "small.py/x"]
NUMBERS = ["0", "-1", "1", "2", "1e-3", "0.5", "nan", "inf", "-inf", "1e400", "1" + "0" * 30, "9" * 5000, "0x10", "1_0"]
NUMBERS += ["1,2", ",", "1,,2", "٣", "²", " 1", "+1", "--1", "2147483648", "4294967296", "18446744073709551616"]
WORDS = ["none", "true", "False", "cpu", "gpu", "best", "refuse", "truncate", "x.html", "x.json", "-", "--", "--help"]
VALUES = [None, True, 0, -1, 2**32, 10**400, 1e308, -0.0, float("nan"), float("inf"), "", "softmax", [], {}, [[1]]]
VALUES += [{"float": "inf"}, {"float": 1}, {"registry": 1}, {"registry": "MODELS", "name": ["x"], "fields": []}]
DEEP = "lists in lists"
# Texts as the system passes them: without NUL, and with invalid UTF-8 bytes as lone surrogates U+DC80 … U+DCFF.
TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
        st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"]),
        st.sampled_from("=.,-_:/\\\x1b\n\r\t\x7f\u202e\ufeff'\"{}[]()"),
    ),
    max_size=12,
)


@cache
def names() -> list[str]:
    """Returns every name of every registry."""
    return sorted({name for place in registry.PLACES for name in registry.table(place)})


@cache
def experiments() -> list[Experiment]:
    """Returns the small experiment with each task, mechanism and position that it supports, and one of another kind."""
    found = [EXPERIMENT, change(EXPERIMENT, model=Seq2Seq(attention="luong"), decoder=Beam())]
    for path, place in {"model.mechanism": "MECHANISMS", "task": "TASKS", "model.position": "POSITIONS"}.items():
        for value in registry.table(place).values():
            try:
                found.append(change(EXPERIMENT, **{path: value}))
            except ValueError:
                continue
    return found


@cache
def paths() -> list[str]:
    """Returns the path of every field of those experiments, and the fields of a study."""
    found = {path for experiment in experiments() for path in flat(experiment)}
    return sorted(found | {"match", "budget", "margin", "quick", "model", "train", "decoder", "model.encoder.block"})


@cache
def written() -> list[str]:
    """Returns those experiments in JSON."""
    return [json.dumps(serialize.write(experiment)) for experiment in experiments()]


@cache
def options() -> dict[str, list[str]]:
    """Returns the options of each command, except those that end it or show tracebacks."""
    found, last = {}, {"--debug", "-h", "--help"}
    for name, verb in VERBS.items():
        parser = Parser(name, verb.takes, verb.does)
        verb.declare(parser)
        known = [option for each in parser._actions for option in each.option_strings]
        found[name] = [option for option in known if option not in last]
    return found


@dataclass(frozen=True)
class Typist:
    """Generates command lines and experiments with the random generator `dice`. `texts` are among the words."""

    dice: Random
    texts: list[str]

    def line(self) -> list[str]:
        """Returns a command line. Many are valid, and others are nearly valid."""
        pick = self.dice.choice
        verb = pick([*VERBS, "show", "run", "run", "run"])
        begun = {"list": "", "parity": "", "bench": "", "data": "", "show": "one.py", "run": "one.py small.py"}
        words = begun.get(verb, "runs/old").split()
        words = [pick(words)] if words and self.dice.random() < 0.9 else []
        if verb in ("sample", "inspect") and self.dice.random() < 0.9:
            words += ["--input", pick(self.texts)]
        for _ in range(pick([0, 1, 1, 2, 3])):
            words += self.words(verb)
        line = [verb, *words]
        if self.dice.random() < 0.3:
            at = self.dice.randrange(len(line))
            line[at] = self.spoiled(line[at])
        return line

    def words(self, verb: str) -> list[str]:
        """Returns an override, a word, or an option of a command with or without a value."""
        pick = self.dice.choice
        if verb in ("show", "run") and self.dice.random() < 0.7:
            return [f"{pick(paths())}={self.value()}"]
        if self.dice.random() < 0.1:
            return [pick([pick(FILES), self.value()])]
        option = pick(options()[verb] or ["--help"])
        return pick([[option], [option, self.value()], [option, self.value()], [f"{option}={self.value()}"]])

    def value(self) -> str:
        """Returns a value that may follow an option or an equals sign."""
        pick = self.dice.choice
        kinds = [pick(NUMBERS), pick(names()), pick(WORDS), pick(self.texts), str(self.dice.randrange(-9, 300))]
        return (pick(self.texts) or "a") * pick([100, 10_000]) if self.dice.random() < 0.03 else pick(kinds)

    def spoiled(self, text: str) -> str:
        """Returns the text with a typing error: a character is lost, doubled, replaced or inserted."""
        at = self.dice.randint(0, len(text))
        here = text[at : at + 1]
        more = self.dice.choice(["", here, here.swapcase(), ".", "=", " ", "é", "\udcff", "\x1b"])
        return text[:at] + more + text[at + self.dice.randint(0, 2) :]

    def experiment(self) -> str:
        """Returns an experiment in JSON with random errors.

        Fields may be removed, exchanged, renamed or replaced, and the text may contain a typing error.
        """
        pick = self.dice.choice
        tree = json.loads(pick(written()))
        for _ in range(pick([0, 1, 1, 2, 3])):
            holder, name = pick(_parts(tree) or [({}, "")])
            other, there = pick(_parts(tree) or [({}, "")])
            held = {"registry": pick(list(registry.PLACES)), "name": pick(names())}
            value = pick([pick(VALUES), pick(VALUES), pick(self.texts), self.dice.random(), held, DEEP])
            value = pick([value, value, json.loads(json.dumps(other.get(there)))])
            kept = holder.pop(name, None)
            if self.dice.random() < 0.8:
                new = name if self.dice.random() < 0.7 else self.spoiled(name)
                holder[new] = pick([kept, value, value])
        deep = pick([1, 50, 400, 100_000])
        text = json.dumps(tree).replace(json.dumps(DEEP), "[" * deep + "]" * deep)
        return self.spoiled(text) if self.dice.random() < 0.1 else text


def _parts(tree: Any) -> list[tuple[dict, str]]:
    """Returns every field of every object in a tree, as pairs of the object and the name."""
    if not isinstance(tree, dict):
        return []
    return [(tree, name) for name in tree] + [part for value in tree.values() for part in _parts(value)]
