"""A single attention layer over key-value pairs, which measures memory capacity (Schlag et al. 2021, section 6.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism, Softmax
from attnlab.mechanisms.inputs import shape_of
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.models.checks import WIDEST, check_sizes
from attnlab.models.shapes import AssociationShape, Shape, check_shape
from attnlab.modules.dense import fold_key
from attnlab.modules.learned import extras, init_learned
from attnlab.modules.parameter import NoDecay
from attnlab.ops.fixed_draws import fixed_draws, fixed_key


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
        check_sizes(width=self.width)
        if not 0 < self.embedding <= WIDEST:
            raise ValueError(f"model.embedding={self.embedding} must be a finite number above 0, and at most {WIDEST}")
        if not isinstance(self.mechanism, Mechanism):
            raise ValueError(
                f"model.mechanism={self.mechanism!r} must be a mechanism, for example MECHANISMS['softmax']"
            )
        if not self.mechanism.traits.decodes:
            raise ValueError(f"model.mechanism={self.mechanism} has no causal form and stores nothing to recall")
        if self.mechanism.queries:
            raise ValueError(f"model.mechanism={self.mechanism} needs inputs per query, which this model does not have")

    def create(self, key: PRNGKeyArray, shape: Shape) -> AssociativeMemoryNetwork:
        """Create a network for data of `shape` (`attnlab.tasks.synthetic.associations.AssociationShape`)."""
        shape = check_shape(self, shape, AssociationShape)
        return AssociativeMemoryNetwork(key, self, shape.keys, shape.values)


class PairProjection(nnx.Module):
    """Linear map of key-value pairs, y_t = W [onehot v_t ; e_t] + b, for values v and key embeddings e given by id.

    Args:
        key: Key for the initial weights, which are uniform in ±`scale`.
        values: Number of values.
        embedding: Size of the key embeddings.
        width: Size of the outputs.
        scale: Bound of the initial weights.
    """

    def __init__(self, key: PRNGKeyArray, values: int, embedding: int, width: int, scale: float):
        self.value = _uniform(fold_key(key, "value"), (values, width), scale)
        self.key = _uniform(fold_key(key, "key"), (embedding, width), scale)
        self.bias = NoDecay(jnp.zeros(width))

    def __call__(self, table, keys: Int[Array, " T"], values: Int[Array, " T"]) -> Float[Array, "T F"]:
        """Return y [T F], given the table of key embeddings and the ids of keys and values."""
        # One product with the whole table, then a lookup by id.
        return self.value[...][values] + (table @ self.key[...])[keys] + self.bias[...][None, :]


class AssociativeMemoryNetwork(nnx.Module):
    """The network of an `AssociativeMemory`, for one example.

    k_t = W_k [onehot v_t ; e(key_t)] + b_k and q = W_q e(query) + b_q. The value vectors are one-hot and not learned.
    The mechanism's extra inputs per token, for example β of the delta rule, are linear maps of the same pair.

    Embeddings are initialised as standard normal vectors, W_k and W_q uniformly in ±1/√width. The published network
    adds 1e-6 to the denominator of the attention. This one returns zero if the denominator is zero.
    """

    def __init__(self, key: PRNGKeyArray, config: AssociativeMemory, keys: int, values: int):
        self.config, self.values = config, values
        width, embedding = config.width, max(1, int(config.embedding * keys))
        scale = width**-0.5
        self.embed = NoDecay(jax.random.normal(fold_key(key, "embed"), (keys, embedding)))
        self.k = PairProjection(fold_key(key, "k"), values, embedding, width, scale)
        self.q = _uniform(fold_key(key, "q"), (embedding, width), scale)
        self.bias = NoDecay(jnp.zeros(width))
        self.tokens = nnx.Dict(
            {
                name: PairProjection(
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
        """Recall the value of each query.

        Args:
            keys: Ids of the keys of the stored pairs.
            values: Ids of their values.
            queries: Ids of the keys whose values are recalled.
            key: Unused.

        Returns:
            One vector per query, which approximates the one-hot vector of its value.
        """
        table, width = self.embed[...], self.config.width
        k = self.k(table, keys, values)
        q = (table @ self.q[...])[queries] + self.bias[...][None, :]
        if self.config.redrawn:
            matrix = rotation(fingerprint(keys, values), width)
            q, k = q @ matrix, k @ matrix
        tokens = {
            name: linear(table, keys, values).reshape(
                -1, *shape_of(self.config.mechanism.tokens[name], width, self.values)
            )
            for name, linear in self.tokens.items()
        }
        fixed = extras(self.config.mechanism, self.learned)
        return self._read(q, k, values, tokens, fixed)

    def start(self, length: int) -> PyTree:
        """Return the mechanism's state before the first pair, with room for `length` pairs."""
        return self.config.mechanism.start(length, self.config.width, self.values)

    def _read(self, q, k, values, tokens, fixed):
        mechanism, T, Q = self.config.mechanism, k.shape[0], q.shape[0]
        if isinstance(mechanism, Pairwise) and mechanism.traits.non_causal:
            # For few queries, summing their weights by value is far cheaper than a state over all values.
            j, i = np.arange(T, dtype=np.int32), np.full(Q, T, np.int32)
            weights = mechanism.weights(q, k, jnp.ones((Q, T), bool), i=i, j=j, **tokens, **fixed)
            return jax.ops.segment_sum(weights.T, values, self.values).T
        state = mechanism.start(T + 1, k.shape[1], self.values, k.dtype)
        v = jax.nn.one_hot(values, self.values, dtype=k.dtype)
        _, state = mechanism.extend(state, k, k, v, **tokens, **fixed)
        zeros = {name: jnp.zeros((1, *x.shape[1:]), x.dtype) for name, x in tokens.items()}

        def recall(q):
            # Extend the state by a token with zero key and value, which reads the memory and adds nothing to it.
            no_value = jnp.zeros((1, self.values), k.dtype)
            return mechanism.extend(state, q[None], jnp.zeros_like(q)[None], no_value, **zeros, **fixed)[0][0]

        return jax.vmap(recall)(q)


def fingerprint(keys: Int[Array, " T"], values: Int[Array, " T"]) -> PRNGKeyArray:
    """Return a random key that depends only on the pairs and their order, so a call needs no other randomness."""
    pairs = keys.astype(jnp.uint32) * jnp.uint32(2654435761) + values.astype(jnp.uint32) * jnp.uint32(40503)
    odd = 2 * jnp.arange(keys.shape[0], dtype=jnp.uint32) + 1
    return jax.random.fold_in(fixed_key(0), jnp.sum(pairs * odd, dtype=jnp.uint32))


def rotation(key: PRNGKeyArray, width: int) -> Float[Array, "K K"]:
    """Return an approximately uniformly distributed orthogonal matrix: three products of random signs and a transform.

    The construction is that of structured orthogonal features (Yu et al. 2016), with the discrete cosine transform
    instead of the Hadamard transform, which needs powers of two. A QR decomposition for every sequence would cost more
    than the rest of the network.
    """
    n = np.arange(width)
    cosine = np.sqrt(2 / width) * np.cos(np.pi * (2 * n[None, :] + 1) * n[:, None] / (2 * width))
    cosine[0] /= np.sqrt(2)
    transform = jnp.asarray(cosine, jnp.float32)
    with fixed_draws():
        first, second, third = jax.random.rademacher(key, (3, width), jnp.float32)
    return first[:, None] * ((transform * second[None, :]) @ (transform * third[None, :]) @ transform)


def _uniform(key: PRNGKeyArray, shape: tuple[int, int], scale: float) -> nnx.Param:
    return nnx.Param(jax.random.uniform(key, shape, minval=-scale, maxval=scale))
