"""The mechanisms. One of each kind is tested by default, and the others with the slow tests."""

import pytest

from attnlab.mechanisms import MECHANISMS, Pairwise, Recurrent


def kind(mechanism):
    """What a network must do for it: two of one kind go through the same lines."""
    has = (
        bool(mechanism.tokens),
        bool(mechanism.learned),
        bool(mechanism.heads(2)),
        mechanism.with_length(9) != mechanism,
    )
    traits = mechanism.traits.non_causal, mechanism.traits.decodes, mechanism.traits.row_independent
    can = (
        mechanism.with_length(9) != mechanism,
        *traits,
        isinstance(mechanism, Pairwise),
        isinstance(mechanism, Recurrent),
    )
    return type(mechanism).__name__ == "Local", *has, *can


def one_of_each(suits=lambda mechanism: True, alike=kind):
    """Parameters: the names of all mechanisms that suit, the later ones of each kind marked slow."""
    first, names = {}, [name for name in MECHANISMS if suits(MECHANISMS[name])]
    for name in names:
        first.setdefault(alike(MECHANISMS[name]), name)
    chosen = set(first.values())
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.slow) for name in names]
