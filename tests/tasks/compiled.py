"""Computes answers and losses of a model, compiled as in training."""

from functools import partial

import jax


def answered(problem, model, part, limit=None):
    """Returns the answers of a model to each batch of a part."""
    answer = jax.jit(partial(problem.answer, model))
    return [jax.device_get(answer(batch)) for batch in problem.eval_batches(part, limit)]


def lost(problem, model, batch):
    """Returns the loss of a model and its metrics."""
    return jax.device_get(jax.jit(lambda batch: problem.loss(model, batch, None))(batch))
