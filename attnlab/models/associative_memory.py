"""One layer of attention over key-value pairs: how much can it keep? (Schlag et al. 2021, section 6.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism, Softmax
from attnlab.mechanisms.inputs import shape_of
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.models.config import WIDEST, check_shape, check_sizes
from attnlab.modules.dense import fold_key
from attnlab.modules.learned import extras, init_learned
from attnlab.modules.parameter import NoDecay


@dataclass(frozen=True)
class AssociativeMemory(metaclass=Documented):
    """Configuration of one attention layer with one head that stores key-value pairs and recalls values by key.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 64
    """Number of components of a projected key."""
    embedding: float = 2.2
    """Size of the key embeddings divided by the number of keys. The product is rounded down."""
    mechanism: Mechanism = Softmax()
    """The attention mechanism; must have a causal form."""
    redrawn: bool = False
    """True: rotate queries and keys by a random rotation that differs between sequences.

    Mechanisms that depend only on q·k are not affected. For random features it is a fresh draw of their directions.
    """

    def __post_init__(self):
        check_sizes(self, "width")
        if not 0 < self.embedding <= WIDEST:
            raise ValueError(f"model.embedding={self.embedding} must be a finite number above 0, and at most {WIDEST}")
        if not isinstance(self.mechanism, Mechanism):
            raise ValueError(f"model.mechanism={self.mechanism!r} must be a mechanism, as those of attnlab.MECHANISMS")
        if not self.mechanism.traits.decodes:
            raise ValueError(f"model.mechanism={self.mechanism} has no causal form: it keeps nothing to ask for")
        if self.mechanism.queries:
            raise ValueError(f"model.mechanism={self.mechanism} needs inputs per query, which this model does not have")

    def create(self, key: PRNGKeyArray, shape: Any) -> AssociativeMemoryNetwork:
        """A new network for so many keys and values (`attnlab.tasks.synthetic.associations.AssociationShape`)."""
        check_shape(self, shape, "keys", "values")
        return AssociativeMemoryNetwork(key, self, shape.keys, shape.values)


class Associations(nnx.Module):
    """y_t = W [onehot v_t ; e_t] + b for values v and embedded keys e, read from two tables by id."""

    def __init__(self, key: PRNGKeyArray, values: int, embedding: int, width: int, scale: float):
        self.value = _uniform(fold_key(key, "value"), (values, width), scale)
        self.key = _uniform(fold_key(key, "key"), (embedding, width), scale)
        self.bias = NoDecay(jnp.zeros(width))

    def __call__(self, table, keys: Int[Array, " T"], values: Int[Array, " T"]) -> Float[Array, "T F"]:
        """One product for all keys there are, then looked up."""
        return self.value[...][values] + (table @ self.key[...])[keys] + self.bias[...][None, :]


class AssociativeMemoryNetwork(nnx.Module):
    """The network of a `AssociativeMemory`; one example.

    k_t = W_k [onehot v_t ; e(key_t)], q = W_q e(query), v_t one-hot and not learned. Embeddings start normal, W_k and
    W_q uniform in ±1/√width; what else a mechanism asks of a token (the β of the delta rule) is a linear map of the
    same pair. The published network adds 1e-6 to the denominator; here a denominator of zero answers zero.
    """

    def __init__(self, key: PRNGKeyArray, config: AssociativeMemory, keys: int, values: int):
        self.config, self.values = config, values
        width, embedding = config.width, max(1, int(config.embedding * keys))
        scale = width**-0.5
        self.embed = NoDecay(jax.random.normal(fold_key(key, "embed"), (keys, embedding)))
        self.k = Associations(fold_key(key, "k"), values, embedding, width, scale)
        self.q = _uniform(fold_key(key, "q"), (embedding, width), scale)
        self.bias = NoDecay(jnp.zeros(width))
        self.tokens = nnx.Dict(
            {
                name: Associations(
                    fold_key(key, name), values, embedding, math.prod(shape_of(shape, width, values)), embedding**-0.5
                )
                for name, shape in config.mechanism.tokens.items()
            }
        )
        self.learned = init_learned(config.mechanism, key, width, values)

    def __call__(
        self,
        keys: Int[Array, " T"],
        values: Int[Array, " T"],
        queries: Int[Array, " Q"],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "Q values"]:
        """What it has kept of each query's value, a vector near its one-hot; `key` is not needed."""
        table, width = self.embed[...], self.config.width
        k = self.k(table, keys, values)
        q = (table @ self.q[...])[queries] + self.bias[...][None, :]
        if self.config.redrawn:
            turn = rotation(fingerprint(keys, values), width)
            q, k = q @ turn, k @ turn
        tokens = {
            name: told(table, keys, values).reshape(-1, *shape_of(self.config.mechanism.tokens[name], width, width))
            for name, told in self.tokens.items()
        }
        fixed = extras(self.config.mechanism, self.learned)
        return self._read(q, k, values, tokens, fixed)

    def start(self, length: int) -> Any:
        """What is remembered before the first pair, with room for `length` of them."""
        return self.config.mechanism.start(length, self.config.width, self.values)

    def _read(self, q, k, values, tokens, fixed):
        mechanism, T, Q = self.config.mechanism, k.shape[0], q.shape[0]
        if isinstance(mechanism, Pairwise):
            # The weights of few queries, collected by value: far cheaper than a state of all values.
            j, i = np.arange(T, dtype=np.int32), np.full(Q, T, np.int32)
            weights = mechanism.weights(q, k, jnp.ones((Q, T), bool), i=i, j=j, **tokens, **fixed)
            return jax.ops.segment_sum(weights.T, values, self.values).T
        state = mechanism.start(T + 1, k.shape[1], self.values, k.dtype)
        told = jax.nn.one_hot(values, self.values, dtype=k.dtype)
        _, state = mechanism.extend(state, k, k, told, **tokens, **fixed)
        nothing = {name: jnp.zeros((1, *x.shape[1:]), x.dtype) for name, x in tokens.items()}

        def ask(q):
            # A token without key and value: it asks and tells nothing.
            empty = jnp.zeros((1, self.values), k.dtype)
            return mechanism.extend(state, q[None], jnp.zeros_like(q)[None], empty, **nothing, **fixed)[0][0]

        return jax.vmap(ask)(q)


def fingerprint(keys: Int[Array, " T"], values: Int[Array, " T"]) -> PRNGKeyArray:
    """A key that is a function of the pairs and their order alone: training and examination need no other source."""
    pairs = keys.astype(jnp.uint32) * jnp.uint32(2654435761) + values.astype(jnp.uint32) * jnp.uint32(40503)
    odd = 2 * jnp.arange(keys.shape[0], dtype=jnp.uint32) + 1
    return jax.random.fold_in(jax.random.key(0), jnp.sum(pairs * odd, dtype=jnp.uint32))


def rotation(key: PRNGKeyArray, width: int) -> Float[Array, "K K"]:
    """An orthogonal matrix, near to evenly drawn: signs at random between cosine transforms, three times over.

    The construction is that of structured orthogonal features (Yu et al. 2016), with the discrete cosine transform in
    the place of Hadamard's, which asks for powers of two; a QR decomposition for every sequence would cost more than
    all the rest.
    """
    n = np.arange(width)
    cosine = np.sqrt(2 / width) * np.cos(np.pi * (2 * n[None, :] + 1) * n[:, None] / (2 * width))
    cosine[0] /= np.sqrt(2)
    transform = jnp.asarray(cosine, jnp.float32)
    first, second, third = jax.random.rademacher(key, (3, width), jnp.float32)
    return first[:, None] * ((transform * second[None, :]) @ (transform * third[None, :]) @ transform)


def _uniform(key: PRNGKeyArray, shape: tuple[int, int], scale: float) -> nnx.Param:
    return nnx.Param(jax.random.uniform(key, shape, minval=-scale, maxval=scale))
