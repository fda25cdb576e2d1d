"""The data of a copying task, and models that answer it."""

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.data.text.example import Example
from attnlab.data.text.units import Characters
from attnlab.data.text.vocabulary import END
from attnlab.tasks.base.metrics import EXACT_MATCH, exact_match
from attnlab.tasks.text.transduction import PairData


def problem(parts, unit=Characters(), measure=exact_match, metrics=(EXACT_MATCH,), buckets=3, **more):
    return PairData(parts, (unit, unit), measure, metrics, buckets, **more)


def copies(*words, group=""):
    return [Example(word, (word,), group) for word in words]


@jax.tree_util.register_pytree_node_class
class Copier:
    """A model that predicts the symbols of the source in order, then END. `scale` is its only parameter."""

    def __init__(self, scale=30.0, vocabulary=7):
        self.scale, self.vocabulary = scale, vocabulary

    def tree_flatten(self):
        return (self.scale,), self.vocabulary

    @classmethod
    def tree_unflatten(cls, vocabulary, leaves):
        return cls(*leaves, vocabulary)

    def __call__(self, source, target, source_keep, target_keep, key=None):
        said = jnp.pad(jnp.where(source_keep, source, END), (0, len(target)), constant_values=END)
        return self.scale * jax.nn.one_hot(said[: len(target)], self.vocabulary)

    def start(self, source, source_keep, length):
        return jnp.pad(jnp.where(source_keep, source, END), (0, 1), constant_values=END), jnp.int32(0)

    def step(self, state, token):
        source, i = state
        at = jnp.minimum(i, len(source) - 1)
        return self.scale * jax.nn.one_hot(source[at], self.vocabulary), (source, i + 1)


class Seen:
    """A model with uniform scores that records its inputs."""

    def __init__(self, vocabulary):
        self.vocabulary, self.shown = vocabulary, {}

    def __call__(self, source, target, source_keep, target_keep, key=None):
        def keep(**shown):
            self.shown.setdefault("rows", []).append({name: np.asarray(x) for name, x in shown.items()})

        bits = jnp.zeros((), jnp.uint32) if key is None else jax.random.bits(key)
        keeps = {"source_keep": source_keep, "target_keep": target_keep}
        jax.debug.callback(keep, source=source, target=target, bits=bits, **keeps)
        return jnp.zeros((len(target), self.vocabulary))
