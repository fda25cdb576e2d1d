"""Parameters without weight decay."""

from flax import nnx


class NoDecay(nnx.Param):
    """A parameter to which weight decay does not apply, unless `train.decay_all` is True.

    It is used for biases, scales and shifts of norms, embeddings, tables of positions and constants of gates. All
    others are plain `nnx.Param`s, to which weight decay applies (`attnlab.training.optimiser`).
    """

    decays = False
