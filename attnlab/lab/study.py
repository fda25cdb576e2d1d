"""Experiments and studies: what is asked. Plain data; imports no jax."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any

from attnlab.lab.folder import folder_name
from attnlab.lab.value import annotations, fits, wanted
from attnlab.registry import field_names, no_field
from attnlab.training.config import Train


@dataclass(frozen=True)
class Experiment:
    """One model on one task, trained one way.

    `decoder` is what answers the test, one of `attnlab.DECODERS`; None: the greedy one, as on validation.

    Raises ValueError, naming the field, where one anywhere in the tree holds what its annotation does not allow.
    """

    task: Any
    model: Any
    train: Train = field(default_factory=Train)
    decoder: Any | None = None

    def __post_init__(self):
        _check(self, ())


def _check(config: Any, above: tuple[str, ...]) -> None:
    for name in field_names(config):
        value, allowed = getattr(config, name), annotations(type(config)).get(name, Any)
        if not fits(value, allowed):
            raise ValueError(f"{'.'.join((*above, name))}={value!r} must be {wanted(allowed)}")
        if is_dataclass(value):
            _check(value, (*above, name))


@dataclass(frozen=True)
class Variation:
    """Named variants, each a set of fields with the value it gives them. The names become folders.

    Raises ValueError for no variants, and for a name that cannot be a folder's.
    """

    variants: dict[str, dict[str, Any]]

    def __post_init__(self):
        if not self.variants:
            raise ValueError("vary: at least one variant must be named")
        for name in self.variants:
            folder_name(name)

    def __or__(self, other: Variation) -> Variation:
        """The variants of both. Raises ValueError for a name that both give."""
        if twice := [name for name in self.variants if name in other.variants]:
            raise ValueError(f"vary: the name {twice[0]!r} is given twice")
        return Variation({**self.variants, **other.variants})

    def fields(self) -> list[str]:
        """The paths that any variant sets, in order."""
        return list(dict.fromkeys(path for changes in self.variants.values() for path in changes))


def over(path: str, **values: Any) -> Variation:
    """One field, several named values: `over("model.mechanism", softmax=Softmax(), linear=Linear())`."""
    return Variation({name: {path: value} for name, value in values.items()})


def product(*variations: Variation) -> Variation:
    """Every variant of one with every variant of the others, named with "-" between, the last one varying fastest.

    Raises ValueError where two of them set one field: the later would undo the earlier.
    """
    variants: dict[str, dict[str, Any]] = {"": {}}
    for variation in variations:
        set_before = {path for changes in variants.values() for path in changes}
        if twice := [path for path in variation.fields() if path in set_before]:
            raise ValueError(f"vary: {twice[0]} is set by two of the variations")
        variants = {
            f"{first}-{second}" if first else second: {**some, **more}
            for first, some in variants.items()
            for second, more in variation.variants.items()
        }
    return Variation(variants)


@dataclass(frozen=True)
class Study:
    """A base experiment, what varies in it, and the question it answers.

    `quick` holds the fields that `--quick` changes, so that a glimpse ends within a minute.
    `name` is the experiment's folder; a file that gives none lends its own.
    `published` holds what others printed of the headline metric, by variant: it is shown beside ours.
    Raises ValueError where a variant names a field that does not exist, or a value that its config refuses.
    """

    base: Experiment
    vary: Variation | None = None
    question: str = ""
    quick: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    published: dict[str, float] = field(default_factory=dict)

    def __post_init__(self):
        if not isinstance(self.base, Experiment):
            raise ValueError(f"base must be an Experiment, not {type(self.base).__name__}")
        self.variants()
        self.variants(quick=True)

    def variants(self, quick: bool = False) -> dict[str, Experiment]:
        """Each variant's experiment, by name, in order; `quick`: each as a glimpse."""
        changes = self.vary.variants if self.vary else {"base": {}}
        glimpse = self.quick if quick else {}
        return {name: change(self.base, **{**own, **glimpse}) for name, own in changes.items()}


def change(config: Any, /, **changes: Any) -> Any:
    """A copy of a tree of dataclasses with `a.b=value` replaced at each dotted path, all at once.

    Every config is built once, with all its changes: what only a passing state would violate is not refused.
    A path below another one changes what that other one puts there.
    Raises ValueError naming the path where a field does not exist.
    """
    return _rebuild(config, {tuple(path.split(".")): value for path, value in changes.items()}, ())


def _rebuild(config: Any, changes: dict[tuple[str, ...], Any], above: tuple[str, ...]) -> Any:
    config = changes.get((), config)
    below: dict[str, dict[tuple[str, ...], Any]] = {}
    for names, value in changes.items():
        if names:
            below.setdefault(names[0], {})[names[1:]] = value
    for name in below:
        if name not in field_names(config):
            raise ValueError(no_field(config, name, ".".join((*above, name))))
    new = {name: _rebuild(getattr(config, name), inner, (*above, name)) for name, inner in below.items()}
    try:
        return replace(config, **new) if new else config
    except ValueError as refusal:
        # Configs that serve in many places name the field alone: "block=0 must be at least 1".
        where = "" if not above or str(refusal).startswith(f"{above[0]}.") else f"{'.'.join(above)}: "
        raise ValueError(f"{where}{refusal}") from refusal
