"""Creates networks for tests, and trains them until they overfit a few sequences."""

import jax
import numpy as np
import optax


def filled(config, shape, seed=0):
    """Returns a network with parameters drawn by NumPy.

    Initial values do not matter, and compiling them takes seconds.
    """
    rng = np.random.default_rng(seed)
    like = jax.eval_shape(lambda: config.create(jax.random.key(0), shape))
    draw = lambda leaf: jax.numpy.asarray(rng.normal(size=leaf.shape) * max(*leaf.shape[-1:], 4, 4) ** -0.5, leaf.dtype)
    return jax.tree.map(draw, like)


def overfitted(model, forced, answers, steps=150):
    """Trains the model so that `forced(model)` scores the answers. Fails if it does not learn them."""
    loss = lambda model: optax.softmax_cross_entropy_with_integer_labels(forced(model), answers).mean()
    adam = optax.adam(1e-2)

    @jax.jit
    def train(model):
        def step(carry, _):
            model, memory = carry
            value, gradient = jax.value_and_grad(loss)(model)
            change, memory = adam.update(gradient, memory)
            return (optax.apply_updates(model, change), memory), value

        return jax.lax.scan(step, (model, adam.init(model)), length=steps)

    with jax.numpy_dtype_promotion("standard"):  # optax promotes
        (model, _), losses = train(model)
    assert losses[-1] < 0.02 < losses[0]
    return model
