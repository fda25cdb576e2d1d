"""What a set of boxes costs: each true box is matched with one of its own, then both are compared.

Carion et al. 2020, section 3.1. Pure functions on one example; jax and optax are imported where they run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from attnlab.tasks.vision.boxes import corners, giou

# Of ‖b − b̂‖₁, of GIoU, and of the class of queries without an object (Carion et al. 2020, A.4 and section 3.1).
L1, GIOU, NOTHING = 5.0, 2.0, 0.1


class Costs(NamedTuple):
    """Sums over one example, to be divided over a batch: `nats` by `weight`, `l1` and `giou` by `count`."""

    nats: Any
    weight: Any
    l1: Any
    giou: Any
    count: Any

    def mean(self) -> dict[str, Any]:
        """{"class", "l1", "giou"}, and "loss" as the paper weighs them; of sums that are zero, zero."""
        import jax.numpy as jnp

        count = jnp.maximum(self.count, 1)
        means = {
            "class": self.nats / jnp.maximum(self.weight, NOTHING),
            "l1": self.l1 / count,
            "giou": self.giou / count,
        }
        return means | {"loss": means["class"] + L1 * means["l1"] + GIOU * means["giou"]}


def costs(scores: Any, boxes: Any, labels: Any, truth: Any) -> Costs:
    """Of Q queries with scores [Q classes+1] and boxes [Q 4], where there are boxes [M 4] of classes [M], −1 for none.

    Boxes are centred, in shares of the image; the last class is that there is nothing. No more than Q are true.
    """
    import jax
    import jax.numpy as jnp

    queries, things = match(scores, boxes, labels, truth)
    there = labels[things] >= 0
    nothing = scores.shape[1] - 1
    target = jnp.full(len(scores), nothing).at[queries].set(jnp.where(there, labels[things], nothing))
    nats = -jnp.take_along_axis(jax.nn.log_softmax(scores), target[:, None], axis=1)[:, 0]
    weight = jnp.where(target == nothing, jnp.asarray(NOTHING, nats.dtype), 1)
    apart = abs(boxes[queries] - truth[things]).sum(axis=1)
    over = giou(corners(boxes), corners(truth))[queries, things]
    sums = (weight * nats, weight, jnp.where(there, apart, 0), jnp.where(there, 1 - over, 0), there.astype(nats.dtype))
    return Costs(*(each.sum() for each in sums))


def match(scores: Any, boxes: Any, labels: Any, truth: Any) -> tuple[Any, Any]:
    """(queries [M], things [M]): the pairs whose cost −p(class) + 5 ‖b − b̂‖₁ − 2 GIoU is least in sum (eq. 1 and 2).

    No gradient goes through it. What is −1 is paired with whatever is left.
    """
    import jax
    import jax.numpy as jnp
    from optax.assignment import hungarian_algorithm

    chances = jax.nn.softmax(scores)[:, jnp.maximum(labels, 0)]
    apart = abs(boxes[:, None, :] - truth[None, :, :]).sum(axis=-1)
    cost = L1 * apart - chances - GIOU * giou(corners(boxes), corners(truth))
    cost = jnp.where(labels[None, :] >= 0, cost, 0)
    # On a number that is none the algorithm would search without end: the loss tells of it.
    return hungarian_algorithm(jax.lax.stop_gradient(jnp.nan_to_num(cost, nan=0, posinf=1e6, neginf=-1e6)))
