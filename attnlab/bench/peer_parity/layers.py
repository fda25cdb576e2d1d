"""Layers and language models of ours as functions of named arrays: the inputs and every parameter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array

from attnlab.bench.peer_parity.evaluation import Arrays
from attnlab.models.config import layers_of_period
from attnlab.models.decoder import make_position
from attnlab.models.language import Language, LanguageNetwork
from attnlab.modules.attention import Attention
from attnlab.modules.position import PositionEncoding

JOINT = "."
"""Joins the names on the path to a parameter, as in "tokens.beta.w"."""


@dataclass(frozen=True)
class ModuleSubject(ABC):
    """A module as a function of named arrays: its input, and its parameters by their path.

    Parameters are random: matrices of variance 1 / inputs, and others near their initial values.
    """

    name: str
    """The name in our lists."""
    config: Language
    """The configuration of the model."""
    B: int = 2
    """Number of examples."""
    T: int = 70
    """Number of tokens."""
    offsets: Mapping[str, float] = field(default_factory=dict)
    """Numbers that are added to the initial values of parameters, by name."""

    @abstractmethod
    def create(self) -> nnx.Module:
        """Create the module."""

    @abstractmethod
    def data(self, rng: np.random.Generator) -> Arrays:
        """Return the input by name."""

    @abstractmethod
    def whole(self, module: nnx.Module, x: Array, keep: Array | None) -> Array:
        """Return the outputs for one example, of which `keep` is False for padding."""

    @abstractmethod
    def steps(self, module: nnx.Module, x: Array) -> Array:
        """Return the outputs for one example, computed token by token."""

    def inputs(self, form: str) -> Arrays:
        """Return the random input and random parameters. In the form "padded" some rows begin with padding."""
        rng = np.random.default_rng(0)
        arrays = self.data(rng)
        if form == "padded":
            padding = self.T // 3 * (np.arange(self.B)[:, None] > 0)
            arrays["keep"] = np.arange(self.T)[None] >= padding
        for name, x in named_parameters(self.create()).items():
            noise = rng.standard_normal(x.shape)
            matrix = name.endswith("w") and x.ndim > 1
            arrays[name] = noise / np.sqrt(x.shape[-2]) if matrix else np.asarray(x, np.float64) + 0.1 * noise
            arrays[name] += self.offsets.get(name, 0)
        return arrays

    def forms(self) -> dict[str, Callable]:
        """Return functions from named arrays to the outputs, by form."""
        once = partial(self._lifted, lambda module, x, keep: self.whole(module, x, keep))
        by_token = partial(self._lifted, lambda module, x, keep: self.steps(module, x))
        return {"whole": once, "padded": once, "steps": by_token}

    def _lifted(self, run: Callable, arrays: Mapping[str, Array]) -> Array:
        """Return the outputs for all examples, of a module with these parameters."""
        kind, state = nnx.split(self.create())
        for path, variable in nnx.to_flat_state(state):
            variable.set_value(arrays[JOINT.join(map(str, path))])
        one = lambda x, keep: run(nnx.merge(kind, state), x, keep)
        keep = arrays.get("keep")
        return jax.vmap(one, in_axes=(0, None if keep is None else 0))(arrays["x"], keep)


@dataclass(frozen=True)
class LayerSubject(ModuleSubject):
    """The attention of one layer of a model."""

    layer: int = 0
    """The number of the layer."""

    def create(self) -> Attention:
        """Create the attention."""
        sizes, mechanisms = layers_of_period(self.config, self.config.mechanism)[self.layer]
        return sizes.attention(jax.random.key(0), mechanisms[0])

    def data(self, rng: np.random.Generator) -> Arrays:
        """Return "x" [B T D]."""
        return {"x": rng.standard_normal((self.B, self.T, self.config.width))}

    def whole(self, module: Attention, x: Array, keep: Array | None) -> Array:
        """Attend causally over a sequence."""
        return module.causal(x, keep, self._position)[0]

    def steps(self, module: Attention, x: Array) -> Array:
        """Attend from one token after the other."""

        def step(state, here):
            y, state = module.extend(here[0][None], state, here[1][None], self._position)
            return state, y[0]

        places = jnp.arange(self.T, dtype=jnp.int32)
        return jax.lax.scan(step, module.start(self.T, x.dtype), (x, places))[1]

    @property
    def _position(self) -> PositionEncoding:
        """The position encoding of the layer."""
        return make_position(jax.random.key(0), self.config, "position", self.T, causal=True).of_layer(self.layer)


@dataclass(frozen=True)
class LanguageSubject(ModuleSubject):
    """A whole language model, from tokens to logits."""

    vocabulary: int = 11
    """Number of symbols."""

    def create(self) -> LanguageNetwork:
        """Create the network, which computes in float64."""
        config = replace(self.config, dtype="float64")
        return LanguageNetwork(jax.random.key(0), config, self.vocabulary, self.T)

    def data(self, rng: np.random.Generator) -> Arrays:
        """Return "x" [B T], the tokens."""
        return {"x": rng.integers(0, self.vocabulary, (self.B, self.T), dtype=np.int32)}

    def whole(self, module: LanguageNetwork, x: Array, keep: Array | None) -> Array:
        """Compute the logits of a sequence."""
        return module(x, keep)

    def steps(self, module: LanguageNetwork, x: Array) -> Array:
        """Compute the logits after one token after the other."""

        def step(state, token):
            logits, state = module.step(state, token)
            return state, logits

        return jax.lax.scan(step, module.start(self.T), x)[1]


def named_parameters(module: nnx.Module) -> dict[str, Array]:
    """Return the parameters of a module by their path."""
    return {JOINT.join(map(str, path)): variable.get_value() for path, variable in nnx.to_flat_state(nnx.state(module))}
