"""The loss of a set of boxes: each true box is matched with one predicted box, and both are compared.

See Carion et al. 2020, section 3.1. These are pure functions of one example. They import jax and optax when called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attnlab.tasks.vision.boxes import corners, giou

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int

# The weights of ‖b − b̂‖₁, of GIoU, and of the class of queries without an object (Carion et al. 2020, A.4 and
# section 3.1).
L1, GIOU, NOTHING = 5.0, 2.0, 0.1


class Costs(NamedTuple):
    """Sums over one example. The sums over a batch are divided by its weight or count."""

    nats: Float[Array, ""]
    """The weighted cross-entropy of the classes in nats."""
    weight: Float[Array, ""]
    """The sum of the weights of `nats`."""
    l1: Float[Array, ""]
    """The sum of ‖b − b̂‖₁ over the true boxes."""
    giou: Float[Array, ""]
    """The sum of 1 − GIoU over the true boxes."""
    count: Float[Array, ""]
    """The number of true boxes."""

    def mean(self) -> dict[str, Array]:
        """Returns the means {"class", "l1", "giou"}, and "loss" with the weights of the paper.

        Means without terms are zero.
        """
        import jax.numpy as jnp

        count = jnp.maximum(self.count, 1)
        means = {
            "class": self.nats / jnp.maximum(self.weight, NOTHING),
            "l1": self.l1 / count,
            "giou": self.giou / count,
        }
        return means | {"loss": means["class"] + L1 * means["l1"] + GIOU * means["giou"]}


def costs(
    scores: Float[Array, "Q classes+1"],
    boxes: Float[Array, "Q 4"],
    labels: Int[Array, " M"],
    truth: Float[Array, "M 4"],
) -> Costs:
    """Computes the costs of one image.

    Boxes are centred (x, y, width, height), in fractions of the image. The last class means "no object". There are at
    most Q true boxes.

    Args:
        scores: The scores of Q queries, [Q classes+1].
        boxes: The predicted boxes, [Q 4].
        labels: The classes of the true boxes, [M], −1 for none.
        truth: The true boxes, [M 4].
    """
    import jax
    import jax.numpy as jnp

    queries, things = match(scores, boxes, labels, truth)
    real = labels[things] >= 0
    nothing = scores.shape[1] - 1
    target = jnp.full(len(scores), nothing).at[queries].set(jnp.where(real, labels[things], nothing))
    nats = -jnp.take_along_axis(jax.nn.log_softmax(scores), target[:, None], axis=1)[:, 0]
    weight = jnp.where(target == nothing, jnp.asarray(NOTHING, nats.dtype), 1)
    l1 = abs(boxes[queries] - truth[things]).sum(axis=1)
    over = giou(corners(boxes), corners(truth))[queries, things]
    sums = (weight * nats, weight, jnp.where(real, l1, 0), jnp.where(real, 1 - over, 0), real.astype(nats.dtype))
    return Costs(*(each.sum() for each in sums))


def match(
    scores: Float[Array, "Q classes+1"],
    boxes: Float[Array, "Q 4"],
    labels: Int[Array, " M"],
    truth: Float[Array, "M 4"],
) -> tuple[Int[Array, " M"], Int[Array, " M"]]:
    """Matches queries with true boxes by the least total cost −p(class) + 5 ‖b − b̂‖₁ − 2 GIoU (eq. 1 and 2).

    No gradient flows through the matching. True boxes with label −1 are matched with the remaining queries.

    Args:
        scores: The scores of Q queries, [Q classes+1].
        boxes: The predicted boxes, [Q 4].
        labels: The classes of the true boxes, [M], −1 for none.
        truth: The true boxes, [M 4].

    Returns:
        (queries [M], things [M]): the indices of the matched queries and true boxes.
    """
    import jax
    import jax.numpy as jnp
    from optax.assignment import hungarian_algorithm

    chances = jax.nn.softmax(scores)[:, jnp.maximum(labels, 0)]
    l1 = abs(boxes[:, None, :] - truth[None, :, :]).sum(axis=-1)
    cost = L1 * l1 - chances - GIOU * giou(corners(boxes), corners(truth))
    cost = jnp.where(labels[None, :] >= 0, cost, 0)
    # With NaN or ∞ the algorithm would not terminate. The loss still reports such values, because only the costs of the
    # matching are replaced here.
    return hungarian_algorithm(jax.lax.stop_gradient(jnp.nan_to_num(cost, nan=0, posinf=1e6, neginf=-1e6)))
