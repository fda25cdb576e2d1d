"""Maps raw real numbers to logarithms of gates between 0 and 1."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def log_sigmoid(raw: Float[Array, "T G"], temperature: float) -> Float[Array, "T G"]:
    """Returns log sigmoid(raw)^(1/temperature) (Yang et al. 2023, section 4.4).

    Args:
      raw: any real numbers [T G].
      temperature: the higher it is, the closer the gates are to 1.

    Returns:
      Logarithms of the gates [T G].
    """
    return jax.nn.log_sigmoid(raw) / temperature


def step_size(raw: Float[Array, "T G"], shift: Float[Array, " G"]) -> Float[Array, "T G"]:
    """Returns softplus(raw + shift), the size of each token's time step (Gu and Dao 2023, section 3.6).

    Args:
      raw: any real numbers [T G].
      shift: learned offset [G].

    Returns:
      Positive step sizes [T G].
    """
    return jax.nn.softplus(raw + shift[None, :])


def log_decay(dt: Float[Array, "T G"], rate: Float[Array, ""]) -> Float[Array, "T G"]:
    """Returns log exp(−e^rate · dt), the logarithm of the decay over a time step (Dao and Gu 2024, section 7).

    Args:
      dt: step sizes [T G].
      rate: logarithm of the rate, a scalar.

    Returns:
      Logarithms of the gates [T G].
    """
    return -jnp.exp(rate) * dt


def heavy_tail(raw: Float[Array, "T G"]) -> Float[Array, "T G"]:
    """Returns raw + 1 for positive numbers and 1 / (1 − raw) for negative, a positive rate of decay.

    Source: code of Mamba-3 (Lahoti et al. 2026).

    Args:
      raw: any real numbers [T G].

    Returns:
      Positive numbers [T G].
    """
    return jnp.maximum(raw, 0) + 1 / (1 - jnp.minimum(raw, 0))


def initial(key: Array, shape: tuple[int, ...] = (), slowest: float = 1.0) -> dict[str, Array]:
    """Returns initial values as in Mamba-2.

    Rates are uniform between `slowest` and 16. Steps are log-uniform in 0.001 … 0.1, for a raw number of zero.

    Args:
      key: a random key.
      shape: shape of the shifts. Defaults to a scalar.
      slowest: the smallest rate. Defaults to 1. A rate of 0, whose logarithm is −∞, is never drawn.

    Returns:
      {"rate": logarithm of the rate, a scalar; "shift": the offset for `step_size`, of the given shape}, in float32.
    """
    one, other = jax.random.split(key)
    steps = jnp.exp(jax.random.uniform(other, shape, jnp.float32, np.log(1e-3), np.log(0.1)))
    return {
        # `uniform` draws from [0, 1). So the rate is in (slowest, 16], which excludes 0 for `slowest` = 0.
        "rate": jnp.log(16 - (16 - slowest) * jax.random.uniform(one, (), jnp.float32)),
        "shift": steps + jnp.log(-jnp.expm1(-steps)),
    }
