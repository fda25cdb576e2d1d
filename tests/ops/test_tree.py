from dataclasses import dataclass, field

import jax
import numpy as np

from attnlab.ops import mask
from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True)
class One:
    x: object
    n: int = field(default=3, metadata={"static": True})


@pytree
@dataclass(frozen=True)
class Other:
    x: object
    n: int = field(default=3, metadata={"static": True})


def test_it_is_flattened_and_unflattened():
    leaves, structure = jax.tree.flatten(One(np.arange(2), 5))
    assert len(leaves) == 1
    assert jax.tree.unflatten(structure, ["any"]) == One("any", 5)
    assert jax.tree_util.keystr(jax.tree_util.tree_flatten_with_path(One(1.0))[0][0][0]) == ".x"
    assert hash(jax.tree.structure(One(1.0, 4))) == hash(jax.tree.structure(One(2.0, 4)))


def test_classes_and_static_fields_are_distinguished():
    structure = jax.tree.structure
    assert structure(One(1.0)) == structure(One(2.0))
    assert structure(One(1.0)) != structure(Other(1.0))
    assert structure(One(1.0)) != structure(One(1.0, 4))


def test_different_masks_are_different_to_jit():
    array = np.ones(4, bool)
    masks = [
        mask.Full(), mask.Causal(), mask.KeyPadding(array), mask.QueryPadding(array), mask.Dilated(2), mask.Global(2),
        mask.Full() & mask.Full(), mask.Full() | mask.Full(), ~mask.Full(), ~mask.Causal(),
    ]  # fmt: skip
    structures = [jax.tree.structure(each) for each in masks]
    assert sum(a == b for a in structures for b in structures) == len(masks)


def test_every_dataclass_with_arrays_is_a_distinct_pytree():
    from pathlib import Path

    house = Path(__file__).parents[2] / "attnlab"
    for room in ("ops", "mechanisms", "modules", "models", "decoding", "analysis"):
        for path in (house / room).rglob("*.py"):
            assert path.stem == "tree" or "register_dataclass" not in path.read_text(), path
