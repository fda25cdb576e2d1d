"""Selects mechanisms for tests: one of each kind runs by default, and the others run with the slow tests."""

import pytest

from attnlab.mechanisms import MECHANISMS, Pairwise, Recurrent


def kind(mechanism):
    """Returns what a network must do for a mechanism: two mechanisms of one kind run the same code."""
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
    """Returns parameters with the names of all suitable mechanisms.

    Only the first one of each kind is not marked slow.
    """
    first, names = {}, [name for name in MECHANISMS if suits(MECHANISMS[name])]
    for name in names:
        first.setdefault(alike(MECHANISMS[name]), name)
    chosen = set(first.values())
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.slow) for name in names]
