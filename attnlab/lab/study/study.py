"""A study: the experiments that are compared, as plain dataclasses. Imports no jax."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

from attnlab.console.format import is_band
from attnlab.documented import Documented
from attnlab.lab.study.experiment import Experiment
from attnlab.lab.study.values import annotations, check_kind, fits
from attnlab.lab.study.variation import EXAMPLE, Variation
from attnlab.registry import field_names, no_field, unknown
from attnlab.training.config import Train

Config = TypeVar("Config")
Match = Literal["parameters", "flops", "state"]
Budget = Literal["steps", "flops", "seconds"]
Band = tuple[float | None, float | None]


@dataclass(frozen=True)
class Study(metaclass=Documented):
    """A base experiment, the variants to compare, and the question that the comparison answers.

    `match` and `budget` are solved by `attnlab.lab.planning.matching`, which documents the method. `variants()`
    returns the experiments as requested, before matching.

    Raises:
        ValueError: if a variant names a field that does not exist or a value that its config refuses. Also if two
            variants are the same experiment under two names. Also if `budget` is not "steps" and a variant sets
            `train.steps` itself. Also if `against` names no variant, or one that does not come earlier. Also if
            `published` or `bands` name no variant. Also if a field of the study has a value of the wrong kind.
    """

    base: Experiment
    """The experiment that every variant changes."""
    vary: Variation | None = None
    """The named variants (see `over`, `product`, `zipped`, `chain`). None means one variant, named "base"."""
    question: str = ""
    """The question that the study answers, in one sentence. It is printed above the results."""
    quick: dict[str, Any] | None = None
    """The fields that `--quick` changes, by dotted path, so that a preview ends in a minute or two.

    None means the fields that `few` returns.
    """
    name: str = ""
    """The name of the study's folder under `OUT/`. If it is empty, the name of the experiment file is used."""
    published: dict[str, float] = field(default_factory=dict)
    """Published values of the primary metric, by variant, in its unit: 0.7 for 70%. The table shows them."""
    bands: dict[str, Band] = field(default_factory=dict)
    """The expected range of the primary metric, by variant, as (least, most) in its unit. None leaves that end open.

    The table reports whether the mean over seeds lies in the range.
    """
    match: Match | None = None
    """The quantity in which every variant is made equal to the base, within 2%.

    "parameters" is the number of parameters, "flops" the FLOPs of a training step. "state" is the number of bytes of
    the decoding state for an example as long as the task's longest. None matches nothing.
    """
    budget: Budget = "steps"
    """What every variant may spend on training: the same number of "steps", of "flops", or of "seconds".

    With "flops" and "seconds" each variant gets its own number of steps. Seconds are measured on the machine when the
    study first runs, and kept in its folder.
    """
    margin: float | None = None
    """The largest difference of primary metrics that still counts as the same, in the unit of the metric.

    For example, 0.01 is one point of accuracy. If it is None, verdicts are better, worse or unclear, never same.
    """
    against: dict[str, str] | Literal["all"] = field(default_factory=dict)
    """A dict from the name of a variant to the name of the earlier variant that it is compared with.

    A variant that is not listed is compared with the first variant that has the same task. "all" also compares every
    variant with every other, and corrects verdicts for all of these pairs.
    """
    part_of: Study | None = field(default=None, compare=False, repr=False)
    """The whole study, if this one keeps only some of its variants (see `keeping`).

    If overrides change the task, they change it there, too. The study of the file is then `part_of.part_of`.
    """
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Notes on how overrides changed the study, one line each."""
    given: frozenset[str] = frozenset()
    """The fields that a person has set on the command line, by dotted path. `--quick` leaves them unchanged."""

    def __post_init__(self):
        if not isinstance(self.base, Experiment):
            raise ValueError(f"base must be an Experiment, not {type(self.base).__name__}")
        self._check_kinds()
        if self.match not in (None, *get_args(Match)):
            raise ValueError(f"match={self.match!r} must be one of {', '.join(get_args(Match))}, or none")
        if self.budget not in get_args(Budget):
            raise ValueError(f"budget={self.budget!r} must be one of {', '.join(get_args(Budget))}")
        if self.margin is not None and not (self.margin > 0 and math.isfinite(self.margin)):
            raise ValueError(f"margin={self.margin} must be above 0 and finite")
        check_twins(self.variants(), "vary: ")
        self._check_steps()
        self._check_against()
        self._check_expected()
        # Only checks that the fields of the preview can be set. Variants may become identical in a preview.
        if self.quick is not None and not self.given:
            self.variants(quick=True)

    @property
    def named(self) -> dict[str, str]:
        """`against` as a dict. It is empty if all pairs are compared."""
        return {} if self.against == "all" else self.against

    @property
    def preview(self) -> dict[str, object]:
        """The fields that `--quick` changes, without those in `given`."""
        brief = few(self.base.train) if self.quick is None else self.quick
        return {path: value for path, value in brief.items() if path not in self.given}

    def variants(self, quick: bool = False) -> dict[str, Experiment]:
        """Return the experiment of each variant, by name and in order.

        Args:
            quick: whether to apply the fields of `preview` as well.
        """
        changes = self.vary.variants if self.vary else {"base": {}}
        preview = self.preview if quick else {}
        return {name: change(self.base, **{**own, **preview}) for name, own in changes.items()}

    def keeping(self, vary: Variation | None, names: Mapping[str, str] | None = None, **changes: object) -> Study:
        """Return the study with only some of its variants.

        Args:
            vary: the variants to keep.
            names: the new names of variants by their old names, which `against` has.
            **changes: other fields of the study to replace at the same time.

        Returns:
            A study whose `part_of` is the whole study. Entries of `against` that name a dropped variant are removed,
            and those of variants that are now one, or no longer come in that order.
        """
        place = {name: n for n, name in enumerate(["base"] if vary is None else vary.variants)}
        against, names = self.against, names or {}
        if against != "all":
            pairs = [(names.get(one, one), names.get(other, other)) for one, other in against.items()]
            against = {one: other for one, other in pairs if place.get(other, len(place)) < place.get(one, -1)}
        return replace(self, vary=vary, against=against, part_of=self.part_of or self, **changes)

    def _check_kinds(self) -> None:
        """Raise ValueError for a field of the wrong kind, because Python's own TypeError would not name the field."""
        kinds = annotations(Study)
        if not fits(self.vary, kinds["vary"]):
            raise ValueError(f"vary={self.vary!r} must be a Variation, for example {EXAMPLE}, or none")
        for name in ("question", "name", "margin"):
            check_kind(name, getattr(self, name), kinds[name])
        for name, holds in (
            ("quick", "fields with their values"),
            ("published", "variants with their numbers"),
            ("bands", "variants with their (least, most)"),
            ("against", "variants with the variant that each is compared with"),
        ):
            value = getattr(self, name)
            if (name, value) in (("quick", None), ("against", "all")):
                continue
            if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
                raise ValueError(f"{name}={value!r} must be a dict of {holds}")
        for variant, number in self.published.items():
            if not fits(number, float) or not math.isfinite(number):
                raise ValueError(f"published: {variant}={number!r} must be a finite number")
        for variant, band in self.bands.items():
            if not is_band(band):
                raise ValueError(f"bands: {variant}={band!r} must be (least, most), and one of them may be None")

    def _check_expected(self) -> None:
        """Raise ValueError if `published` or `bands` name an unknown variant. A part of a study keeps all entries."""
        if self.part_of:
            return
        names = list(self.vary.variants) if self.vary else ["base"]
        for expected in ("published", "bands"):
            for name in getattr(self, expected):
                if name not in names:
                    raise ValueError(unknown(f"{expected}: no variant {name!r}", name, names))

    def _check_against(self) -> None:
        """Raise ValueError if `against` names an unknown variant, or one that does not come earlier."""
        names = list(self.vary.variants) if self.vary else ["base"]
        for one, other in self.named.items():
            for name in (one, other):
                if name not in names:
                    raise ValueError(unknown(f"against: no variant {name!r}", str(name), names))
            if names.index(other) >= names.index(one):
                raise ValueError(f"against: {one!r} must come after {other!r}, which it is compared with")

    def _check_steps(self) -> None:
        """Raise ValueError if a variant sets the steps that the budget solves for."""
        for name, changes in (self.vary.variants if self.vary and self.budget != "steps" else {}).items():
            if path := next((path for path in ("train", "train.steps") if path in changes), None):
                raise ValueError(f"budget={self.budget!r} solves for train.steps, but {name!r} sets {path}")


def few(train: Train) -> dict[str, object]:
    """Return the fields of a default preview: at most 64 steps and 16 warm-up steps, the first two seeds, no averaging.

    Args:
        train: the training configuration to shorten.

    Returns:
        The changed fields, by dotted path.
    """
    seeds = min(train.seeds, 2) if isinstance(train.seeds, int) else train.seeds[:2]
    shortened = {"train.steps": min(train.steps, 64), "train.warmup": min(train.warmup, 16)}
    return {**shortened, "train.seeds": seeds, "train.average": 0}


def check_twins(experiments: dict[str, Experiment], where: str) -> None:
    """Raise ValueError if two names have the same experiment.

    The difference of an experiment from itself would be reported as a finding.

    Args:
        experiments: the experiments by name.
        where: a prefix of the message.
    """
    seen: list[tuple[str, Experiment]] = []
    for name, experiment in experiments.items():
        # A single seed or rate may be given as a number or as a tuple. Both mean the same experiment.
        train = experiment.train
        listed = replace(experiment, train=replace(train, seeds=train.seed_list, learning_rate=train.rates))
        if twin := next((other for other, before in seen if before == listed), None):
            raise ValueError(f"{where}{twin!r} and {name!r} are the same experiment; give it one name")
        seen.append((name, listed))


def warmups(experiments: dict[str, Experiment]) -> list[str]:
    """Return a warning line for each warm-up longer than its training, whose learning rate never reaches its peak."""
    cold: dict[tuple[int, int], list[str]] = {}
    for name, experiment in experiments.items():
        if experiment.train.warmup > experiment.train.steps:
            cold.setdefault((experiment.train.warmup, experiment.train.steps), []).append(name)
    return [
        f"{', '.join(names)}: train.warmup={warmup} is longer than train.steps={steps}, so the learning rate "
        f"reaches only {steps / warmup:.1%} of its peak"
        for (warmup, steps), names in cold.items()
    ]


def check_study(study: object) -> None:
    """Raise TypeError if `study` is not a Study. The message says how to obtain one."""
    if not isinstance(study, Study):
        hint = "Study(experiment) makes one" if isinstance(study, Experiment) else "load_study(path) reads one"
        raise TypeError(f"expected a Study, got {type(study).__name__}; {hint}")


def change(config: Config, /, **changes: object) -> Config:
    """Return a copy of a tree of dataclasses with the fields at the given dotted paths replaced.

    All changes are made at once. Every config is built once with all its changes, so an invalid intermediate
    combination is not refused.

    Args:
        config: the dataclass at the root of the tree.
        **changes: new values by dotted path, for example `**{"model.width": 64}`. If one path lies below another, it
            changes the value that the other one sets.

    Raises:
        ValueError: if a field does not exist or a config refuses a value. The message names the path.
    """
    return _rebuild(config, {tuple(path.split(".")): value for path, value in changes.items()}, ())


def _rebuild(config: Any, changes: dict[tuple[str, ...], object], above: tuple[str, ...]) -> Any:
    """Apply changes below `config`, which is found at the path `above`, from the leaves up."""
    config = changes.get((), config)
    below: dict[str, dict[tuple[str, ...], object]] = {}
    for names, value in changes.items():
        if names:
            below.setdefault(names[0], {})[names[1:]] = value
    for name in below:
        if name not in field_names(config):
            raise ValueError(no_field(config, name, ".".join((*above, name))))
    new = {name: _rebuild(getattr(config, name), inner, (*above, name)) for name, inner in below.items()}
    kinds = annotations(type(config))
    for name, value in new.items():
        # Checks of a config compare values. With one of the wrong kind, Python's TypeError would not name the field.
        check_kind(".".join((*above, name)), value, kinds.get(name, object))
    try:
        return replace(config, **new) if new else config
    except ValueError as refusal:
        # A config that is used in many places names only the field ("block=0 must be at least 1"). Add its path.
        where = "" if not above or str(refusal).startswith(f"{above[0]}.") else f"{'.'.join(above)}: "
        raise ValueError(f"{where}{refusal}") from refusal
