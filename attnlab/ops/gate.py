"""Raw numbers, any at all, as the logarithms of gates between 0 and 1."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def log_sigmoid(raw: Float[Array, "T G"], temperature: float) -> Float[Array, "T G"]:
    """log sigmoid(raw)^(1/temperature): the higher, the nearer to open (Yang et al. 2023, section 4.4)."""
    return jax.nn.log_sigmoid(raw) / temperature


def step(raw: Float[Array, "T G"], shift: Float[Array, " G"]) -> Float[Array, "T G"]:
    """softplus(raw + shift): how far in time a token goes (Gu and Dao 2023, section 3.6)."""
    return jax.nn.softplus(raw + shift[None, :])


def log_decay(step: Float[Array, "T G"], rate: Float[Array, ""]) -> Float[Array, "T G"]:
    """log exp(−e^rate · step): what is left after a step (Dao and Gu 2024, section 7)."""
    return -jnp.exp(rate) * step


def initial(key: Array, shape: tuple[int, ...] = (), slowest: float = 1.0) -> dict[str, Array]:
    """Where Mamba-2 starts: rates uniform in 1 … 16, and shifts [shape] whose steps are log-uniform in 0.001 … 0.1.

    The latter at a raw number of zero; rates as their logarithms. `slowest` is the least rate; 0 is never drawn, whose
    logarithm is none.
    """
    one, other = jax.random.split(key)
    steps = jnp.exp(jax.random.uniform(other, shape, jnp.float32, np.log(1e-3), np.log(0.1)))
    return {
        # Numbers are drawn from 0 up to, but without, 1: so from 16 down to, but without, the slowest.
        "rate": jnp.log(16 - (16 - slowest) * jax.random.uniform(one, (), jnp.float32)),
        "shift": steps + jnp.log(-jnp.expm1(-steps)),
    }
