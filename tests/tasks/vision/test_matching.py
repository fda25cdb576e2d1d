from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.tasks.vision.boxes import corners, giou
from attnlab.tasks.vision.matching import Costs, costs, match

Q, M, CLASSES = 5, 3, 2
PAIR, COSTS = jax.jit(match), jax.jit(costs)


def drawn(seed=0, true=M):
    random = np.random.default_rng(seed)
    box = lambda count: np.concatenate([random.uniform(0.2, 0.8, (count, 2)), random.uniform(0.1, 0.4, (count, 2))], 1)
    labels = np.where(np.arange(M) < true, random.integers(CLASSES, size=M), -1)
    return [
        np.float32(random.normal(size=(Q, CLASSES + 1))),
        np.float32(box(Q)),
        np.int32(labels),
        np.float32(box(M) * (labels >= 0)[:, None]),
    ]


def price(scores, boxes, labels, truth):
    """Returns −p(class) + 5 ‖b − b̂‖₁ − 2 GIoU, pair by pair [Q M]."""
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    apart = abs(boxes[:, None] - truth[None]).sum(axis=2)
    return 5 * apart - chances[:, labels] - 2 * giou(corners(boxes), corners(truth))


@pytest.mark.parametrize("true", [M, 2, 1])
@pytest.mark.parametrize("seed", range(6))
def test_the_matching_has_minimal_cost(seed, true):
    given = drawn(seed, true)
    queries, things = map(np.asarray, PAIR(*given))
    assert sorted(things) == list(range(M))
    assert len(set(queries)) == M
    table = price(*given)
    cheapest = min(sum(table[q, m] for m, q in enumerate(chosen)) for chosen in permutations(range(Q), true))
    np.testing.assert_allclose(
        sum(table[q, m] for q, m in zip(queries, things, strict=True) if m < true), cheapest, rtol=1e-5
    )


def test_an_example_without_boxes_has_only_no_object_targets():
    scores, boxes, *none = drawn(true=0)
    found = COSTS(scores, boxes, *none)
    np.testing.assert_allclose(found.nats, -0.1 * np.asarray(jax.nn.log_softmax(scores)[:, -1]).sum(), rtol=1e-6)
    np.testing.assert_allclose([found.weight, found.l1, found.giou, found.count], [Q * 0.1, 0, 0, 0], rtol=1e-6)
    # In a batch of such examples alone, boxes cost zero, and nothing is divided by zero.
    assert float(found.mean()["l1"]) == 0


def test_loss_by_hand():
    """Query 0 predicts the true box, 0.1 too far right. Boxes are 0.2 wide: the intersection is 1/2, the union 3/2."""
    scores = np.log(np.float32([[0.2, 0.2, 0.6], [0.5, 0.25, 0.25]]))
    boxes = np.float32([[0.4, 0.5, 0.2, 0.2], [0.9, 0.9, 0.2, 0.2]])
    labels, truth = np.int32([0, -1]), np.float32([[0.3, 0.5, 0.2, 0.2], [0, 0, 0, 0]])
    found = jax.jit(costs)(scores, boxes, labels, truth)
    np.testing.assert_allclose(found.l1, 0.1, rtol=1e-5)
    np.testing.assert_allclose(found.giou, 1 - 1 / 3, rtol=1e-5)
    np.testing.assert_allclose(found.nats, -np.log(0.2) - 0.1 * np.log(0.25), rtol=1e-5)
    np.testing.assert_allclose([found.weight, found.count], [1.1, 1], rtol=1e-6)
    means = found.mean()
    np.testing.assert_allclose(means["loss"], means["class"] + 5 * 0.1 + 2 * 2 / 3, rtol=1e-5)


def test_losses_are_normalised_over_the_batch():
    """Two examples, with one box and with three boxes, are weighted by their numbers of boxes."""
    both = [COSTS(*drawn(seed, true)) for seed, true in ((0, 1), (1, 3))]
    together = Costs(*map(sum, zip(*both, strict=True))).mean()
    np.testing.assert_allclose(together["l1"], (both[0].l1 + both[1].l1) / 4, rtol=1e-6)


def test_the_order_of_queries_and_boxes_has_no_effect():
    scores, boxes, labels, truth = drawn()
    turned = COSTS(scores[::-1], boxes[::-1], labels[::-1], truth[::-1])
    np.testing.assert_allclose(turned, COSTS(scores, boxes, labels, truth), rtol=1e-5)


def test_padding_boxes_have_no_gradient():
    gradient = jax.jit(jax.grad(lambda boxes, *rest: costs(rest[0], boxes, *rest[1:]).mean()["loss"]))
    scores, boxes, labels, truth = drawn(true=2)
    first = gradient(boxes, scores, labels, truth)
    assert np.isfinite(first).all()
    assert (np.abs(first).sum(axis=1) > 0).sum() == 2
    elsewhere = np.where((labels < 0)[:, None], np.float32(0.7), truth)
    np.testing.assert_array_equal(first, gradient(boxes, scores, labels, elsewhere))


def test_nan_gives_a_nan_loss_and_terminates():
    scores, boxes, labels, truth = drawn()
    for spoilt in (np.nan, np.inf):
        assert not np.isfinite(COSTS(np.full_like(scores, spoilt), boxes, labels, truth).mean()["loss"])
        assert not np.isfinite(COSTS(scores, np.full_like(boxes, spoilt), labels, truth).mean()["loss"])


def test_a_batch_of_lanes_equals_vmap():
    given = [jnp.stack([jnp.asarray(a), jnp.asarray(b)]) for a, b in zip(drawn(0), drawn(1, 2), strict=True)]
    together = jax.jit(jax.vmap(costs))(*given)
    for n, alone in enumerate((drawn(0), drawn(1, 2))):
        np.testing.assert_allclose([each[n] for each in together], COSTS(*alone), rtol=1e-5)
