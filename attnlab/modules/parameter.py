"""Parameters that weight decay spares."""

from flax import nnx


class NoDecay(nnx.Param):
    """A parameter that weight decay leaves alone, unless `train.decay_all`.

    Used for biases, scales and shifts of norms, embeddings, tables of positions and constants of gates. Every other
    parameter, a plain `nnx.Param`, decays (`attnlab.training.optimiser`).
    """

    decays = False
