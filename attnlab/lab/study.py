"""Experiments and studies: what is asked. Plain data; imports no jax."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Literal, get_args

from attnlab.lab.quantity import is_band
from attnlab.lab.value import annotations, fits, wanted
from attnlab.lab.variation import Variation
from attnlab.registry import field_names, no_field, unknown
from attnlab.training.config import RATES, Train

Match = Literal["parameters", "flops", "state"]
Budget = Literal["steps", "flops", "seconds"]
Band = tuple[float | None, float | None]


@dataclass(frozen=True)
class Experiment:
    """One model on one task, trained one way.

    `decoder` is what answers the test, one of `attnlab.DECODERS`; None: the greedy one, as on validation.

    Raises ValueError, naming the field, where one anywhere in the tree holds what its annotation does not allow, or a
    number that no array could: jax computes with the seeds and sizes of 32 bits, and what float32 holds.
    """

    task: Any
    model: Any
    train: Train = field(default_factory=Train)
    decoder: Any | None = None

    def __post_init__(self):
        if not (hasattr(self.task, "load") or hasattr(self.model, "create")) and hasattr(self.model, "load"):
            kinds = f"task={type(self.task).__name__}(…), model={type(self.model).__name__}(…)"
            raise ValueError(f"{kinds}: they stand in each other's place")
        _check(self, ())


def _check(config: Any, above: tuple[str, ...]) -> None:
    for name in field_names(config):
        value, allowed = getattr(config, name), annotations(type(config)).get(name, Any)
        if not fits(value, allowed):
            raise ValueError(f"{'.'.join((*above, name))}={value!r} must be {wanted(allowed)}")
        _check_range(".".join((*above, name)), value)
        if is_dataclass(value):
            _check(value, (*above, name))


def _check_range(path: str, value: Any) -> None:
    """Refuse numbers that would wrap or become infinite where they are used, whatever the config."""
    for entry in value if isinstance(value, tuple) else (value,):
        if isinstance(entry, int) and not -(2**32) < entry < 2**32:
            raise ValueError(f"{path}={value} must be less than 2³² in size")
        if isinstance(entry, float) and not abs(entry) <= RATES[1]:
            raise ValueError(f"{path}={value} must be a finite number that float32 holds")


@dataclass(frozen=True)
class Study:
    """A base experiment, what varies in it, and the question it answers.

    `quick` holds the fields that `--quick` changes, so that a glimpse ends in a minute or two; None: those of `few`.
    `name` is the experiment's folder; a file that gives none lends its own.
    `published` holds what others printed of the headline metric, by variant: it is shown beside ours.
    `bands` holds where the headline metric is to come out, by variant, as (least, most), None for an end that is open:
    the table says whether the mean over seeds does.
    `margin` is how far apart two variants' headline metrics may be and still count as the same, in the metric's own
    unit (0.01 is a point of accuracy); None: then verdicts are better, worse or unclear, and none is the same.
    `against` names the variant that another is compared with, one that stands before it, by that other's name; the rest
    are compared with the first that was asked the same. "all": every variant is compared with every other, too, and
    verdicts are corrected for all of these pairs. `part_of` is the study that this one has some variants of, and
    `notes` what a person should know of the choice, a line each. `given` are the fields that a person has set, which
    `--quick` leaves alone.

    `match` makes variants agree with the base within 2%: in "parameters", in the "flops" of a training step, or in the
    "state", the bytes that decoding an example as long as the task's longest remembers. `budget` says what they are
    trained for: as many "steps", or as many "flops" or "seconds", for which each has steps of its own; seconds are
    measured on the machine when the study first runs, and kept. Both are solved for by `attnlab.lab.matching`, which
    says how; `variants()` holds what was asked, not what was solved.

    Raises ValueError where a variant names a field that does not exist, or a value that its config refuses; where two
    variants are one experiment under two names; for a budget over steps that a variant sets itself; and for a
    comparison against what is no variant before.
    """

    base: Experiment
    vary: Variation | None = None
    question: str = ""
    quick: dict[str, Any] | None = None
    name: str = ""
    published: dict[str, float] = field(default_factory=dict)
    bands: dict[str, Band] = field(default_factory=dict)
    match: Match | None = None
    budget: Budget = "steps"
    margin: float | None = None
    against: dict[str, str] | Literal["all"] = field(default_factory=dict)
    part_of: Study | None = field(default=None, compare=False, repr=False)
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    given: frozenset[str] = frozenset()

    def __post_init__(self):
        if not isinstance(self.base, Experiment):
            raise ValueError(f"base must be an Experiment, not {type(self.base).__name__}")
        self._check_kinds()
        if self.match not in (None, *get_args(Match)):
            raise ValueError(f"match={self.match!r} must be one of {', '.join(get_args(Match))}, or none")
        if self.budget not in get_args(Budget):
            raise ValueError(f"budget={self.budget!r} must be one of {', '.join(get_args(Budget))}")
        if self.margin is not None and not (self.margin > 0 and math.isfinite(self.margin)):
            raise ValueError(
                f"margin={self.margin} must be above 0: no two measurements are the same to the last digit"
            )
        check_twins(self.variants(), "vary: ")
        self._check_steps()
        self._check_against()
        # What a glimpse changes may make variants alike: it is thrown away.
        if self.quick is not None and not self.given:
            self.variants(quick=True)

    @property
    def named(self) -> dict[str, str]:
        """By variant the one that the study names to compare it with; none where all pairs are compared."""
        return {} if self.against == "all" else self.against

    @property
    def glimpse(self) -> dict[str, Any]:
        """The fields that `--quick` changes."""
        brief = few(self.base.train) if self.quick is None else self.quick
        return {path: value for path, value in brief.items() if path not in self.given}

    def variants(self, quick: bool = False) -> dict[str, Experiment]:
        """Each variant's experiment, by name, in order; `quick`: each as a glimpse."""
        changes = self.vary.variants if self.vary else {"base": {}}
        glimpse = self.glimpse if quick else {}
        return {name: change(self.base, **{**own, **glimpse}) for name, own in changes.items()}

    def keeping(self, vary: Variation | None, **changes: Any) -> Study:
        """The study of these of its variants alone, other fields of it changed at once."""
        left = {"base"} if vary is None else set(vary.variants)
        against = self.against
        if against != "all":
            against = {one: other for one, other in against.items() if {one, other} <= left}
        return replace(self, vary=vary, against=against, part_of=self.part_of or self, **changes)

    def _check_kinds(self) -> None:
        """Refuse values of another kind before they are used: Python's own words would name no field."""
        kinds = annotations(Study)
        for name in ("vary", "question", "name", "margin"):
            if not fits(value := getattr(self, name), kinds[name]):
                raise ValueError(f"{name}={value!r} must be {wanted(kinds[name])}")
        for name, holds in (
            ("quick", "fields with their values"),
            ("published", "variants with their numbers"),
            ("bands", "variants with the least and the most"),
            ("against", "variants with the one that each is compared with"),
        ):
            value = getattr(self, name)
            if (name, value) in (("quick", None), ("against", "all")):
                continue
            if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
                raise ValueError(f"{name}={value!r} must be a dict: {holds}")
        for variant, number in self.published.items():
            if not fits(number, float) or not math.isfinite(number):
                raise ValueError(f"published: {variant}={number!r} must be a finite number")
        for variant, band in self.bands.items():
            if not is_band(band):
                raise ValueError(f"bands: {variant}={band!r} must be (least, most), of which one may be None")

    def _check_against(self) -> None:
        names = list(self.vary.variants) if self.vary else ["base"]
        for one, other in self.named.items():
            for name in (one, other):
                if name not in names:
                    raise ValueError(unknown(f"against: no variant {name!r}", str(name), names))
            if names.index(other) >= names.index(one):
                raise ValueError(f"against: {one!r} must stand behind {other!r}, which it is compared with")

    def _check_steps(self) -> None:
        for name, changes in (self.vary.variants if self.vary and self.budget != "steps" else {}).items():
            if path := next((path for path in ("train", "train.steps") if path in changes), None):
                raise ValueError(f"budget={self.budget!r} solves for train.steps, but {name!r} sets {path}")


def few(train: Train) -> dict[str, Any]:
    """The fields of a glimpse, of what is trained so: a few steps of the first two seeds, of which no mean is taken."""
    seeds = min(train.seeds, 2) if isinstance(train.seeds, int) else train.seeds[:2]
    few = {"train.steps": min(train.steps, 64), "train.warmup": min(train.warmup, 16)}
    return few | {"train.seeds": seeds, "train.average": 0}


def check_twins(experiments: dict[str, Experiment], where: str) -> None:
    """Raise ValueError for one experiment under two names: its difference from itself would read as a finding."""
    seen: list[tuple[str, Experiment]] = []
    for name, experiment in experiments.items():
        # Seeds and rates may be written as a number or as a list.
        train = experiment.train
        listed = replace(experiment, train=replace(train, seeds=train.seed_list, learning_rate=train.rates))
        if twin := next((other for other, before in seen if before == listed), None):
            raise ValueError(f"{where}{twin!r} and {name!r} are the same experiment; give it one name")
        seen.append((name, listed))


def warmups(experiments: dict[str, Experiment]) -> list[str]:
    """A line for each warm-up that is longer than its training: the learning rate never comes to itself."""
    cold: dict[tuple[int, int], list[str]] = {}
    for name, experiment in experiments.items():
        if experiment.train.warmup > experiment.train.steps:
            cold.setdefault((experiment.train.warmup, experiment.train.steps), []).append(name)
    return [
        f"{', '.join(names)}: train.warmup={warmup} does not end in train.steps={steps}: the learning rate comes to "
        f"{steps / warmup:.1%} of itself"
        for (warmup, steps), names in cold.items()
    ]


def check_study(study: Any) -> None:
    """Raise TypeError, saying how one is had, for what is no study."""
    if not isinstance(study, Study):
        hint = "Study(experiment) makes one of it" if isinstance(study, Experiment) else "load_study(path) reads one"
        raise TypeError(f"a Study is wanted, not {type(study).__name__}: {hint}")


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
