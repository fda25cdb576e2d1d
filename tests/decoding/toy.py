"""A model whose scores depend on all earlier symbols, and a reference in NumPy."""

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import jax
import numpy as np

from attnlab.decoding import DecodeProblem
from attnlab.ops.tree import pytree

PAD, BEGIN, END, ORDINARY = 0, 1, 2, (3, 4)
SYMBOLS, LENGTH = 5, 5


@pytree
@dataclass(frozen=True)
class State:
    """The number that the symbols so far encode, and the scores that follow each number."""

    table: Any  # [numbers SYMBOLS], the same for all hypotheses
    number: Any
    length: int = field(default=LENGTH, metadata={"static": True})


def step(state, token):
    number = state.number * SYMBOLS + token
    return state.table[number], replace(state, number=number)


def start(table):
    return State(table, jax.numpy.asarray(0, "int32"))


@partial(jax.jit, static_argnums=(0, 2))
def decode(decoder, table, length=LENGTH, key=None):
    return decoder.search(DecodeProblem(step, start(table), BEGIN, END, length, PAD), key)


@partial(jax.jit, static_argnums=0)
def decode_all(decoder, tables, keys=None):
    return jax.vmap(lambda table, key: decoder.search(DecodeProblem(step, start(table), BEGIN, END, LENGTH, PAD), key))(
        tables, keys
    )


def drawn(seed, length=LENGTH, scale=1.5):
    """Returns random scores after every sequence of fewer than `length` symbols."""
    return np.random.default_rng(seed).normal(size=(SYMBOLS**length, SYMBOLS)).astype("float32") * scale


def scores(table, text):
    """Returns the scores of the symbol after a text."""
    number = BEGIN
    for symbol in text:
        number = number * SYMBOLS + symbol
    return table[number].astype("float64")


def logs(table, text):
    """Returns the log-probabilities of the symbol after a text."""
    given = scores(table, text)
    return given - np.log(np.exp(given).sum())


def total(table, text):
    """Returns the log-probability of a text."""
    return sum(logs(table, text[:n])[symbol] for n, symbol in enumerate(text))


def texts(length=LENGTH):
    """Returns all texts: those that end, and those that have not ended after `length` symbols."""
    ended = [(*text, END) for n in range(length) for text in product(ORDINARY, repeat=n)]
    return ended, list(product(ORDINARY, repeat=length))


def norm(n, penalty):
    """Returns the length penalty of Wu et al. 2016, eq. 14, for a text of n symbols."""
    return (5 + np.asarray(n)) ** penalty / 6**penalty


def padded(text, length=LENGTH):
    return [*text, *[PAD] * (length - len(text))]


def row(tokens):
    """Returns the text of a row, and checks that only padding follows its end."""
    tokens = np.asarray(tokens).tolist()
    text = tuple(tokens[: tokens.index(END) + 1]) if END in tokens else tuple(tokens)
    assert padded(text, len(tokens)) == tokens
    return text
