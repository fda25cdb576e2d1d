"""Random numbers that depend on a seed alone, whatever the settings of jax.

Some mechanisms draw numbers while they compute, for example the directions of a hash. A trained model needs the same
numbers wherever it is loaded. `jax.random.key` depends on the default generator and on `jax_random_seed_offset`, and
what a key draws depends on `jax_threefry_partitionable`.
"""

from contextlib import AbstractContextManager

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray


def fixed_key(seed: int) -> PRNGKeyArray:
    """Returns the key that `jax.random.key(seed)` returns by default.

    Args:
      seed: an integer. Its lower 32 bits count.
    """
    return jax.random.wrap_key_data(jnp.asarray([0, seed % 2**32], jnp.uint32), impl="threefry2x32")


def fixed_draws() -> AbstractContextManager[None]:
    """Returns a context in which a key draws what it draws by default."""
    return jax.threefry_partitionable(True)
