"""Raw numbers, any at all, as the logarithms of gates between 0 and 1."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def sigmoid(raw: Float[Array, "T G"], temperature: float) -> Float[Array, "T G"]:
    """log sigmoid(raw)^(1/temperature): the higher, the nearer to open (Yang et al. 2023, section 4.4)."""
    return jax.nn.log_sigmoid(raw) / temperature


def step(raw: Float[Array, "T G"], shift: Float[Array, " G"]) -> Float[Array, "T G"]:
    """softplus(raw + shift): how far in time a token goes (Gu and Dao 2023, section 3.6)."""
    return jax.nn.softplus(raw + shift[None, :])


def fade(step: Float[Array, "T G"], rate: Float[Array, ""]) -> Float[Array, "T G"]:
    """log exp(−e^rate · step): what is left after a step (Dao and Gu 2024, section 7)."""
    return -jnp.exp(rate) * step


def initial_shift(key: Array, shape: tuple[int, ...], shortest: float = 1e-3, longest: float = 0.1) -> Array:
    """Shifts whose steps are log-uniform between the two, at a raw number of zero."""
    low, high = np.log(shortest), np.log(longest)
    steps = jnp.exp(jax.random.uniform(key, shape, jnp.float32, low, high))
    return steps + jnp.log(-jnp.expm1(-steps))


def initial_rate(key: Array, shape: tuple[int, ...], least: float = 1.0, most: float = 16.0) -> Array:
    """Logarithms of rates that are uniform between the two."""
    return jnp.log(jax.random.uniform(key, shape, jnp.float32, least, most))
