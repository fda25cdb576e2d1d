"""Counts over simulated studies how often the statistics are right.

    python -m tests.lab.coverage              2,000 studies per row; up to forty minutes on one core
    python -m tests.lab.coverage 20000        20,000 studies per row

Every row calls functions of `attnlab.lab.statistics`, once per study. Values are in units of the standard deviation
between seeds.
"""

import math
import sys
from collections.abc import Callable

import numpy as np

from attnlab.lab.statistics import choose, compare, interval, power, verdicts

STUDIES = 2000
SEEDS = (3, 5, 10)
NAMES = ("normal", "t3")
VARIANTS = 4
LEARN = (0.2, 0.5, 0.8)  # shares of a variant's seeds that learn the task
LUCK = 0.9  # share of the variance of a lane's validation and test values that comes from its seed
# True means of the learning rates, in units of the standard deviation between seeds.
ALIKE, GRID, ONE = (0.0,) * 4, (0.0, 1 / 3, 2 / 3, 1.0), (0.0,)
PROFILES = {"4 equal rates": ALIKE, "rates 0 ⅓ ⅔ 1": GRID, "8 equal rates": ALIKE * 2}
TUNED = {"A/A, 4 equal rates": (ALIKE, ALIKE), "A/A, rates 0 ⅓ ⅔ 1": (GRID, GRID), "4 equal rates / one": (ALIKE, ONE)}


def draw(name: str, random: np.random.Generator, *shape: int) -> np.ndarray:
    """Returns numbers of mean 0 and standard deviation 1: normal, or Student's t with 3 degrees of freedom.

    The t distribution with 3 degrees of freedom has standard deviation √3, so its numbers are divided by √3.
    """
    return random.normal(size=shape) if name == "normal" else random.standard_t(3, size=shape) / math.sqrt(3)


def count(event: Callable[[np.ndarray], bool], studies: np.ndarray) -> int:
    """Returns the number of studies in which an event happens."""
    return sum(bool(event(study)) for study in studies)


def covered(name: str, seeds: int, studies: int = STUDIES) -> int:
    """Returns the number of studies whose interval contains the true mean."""

    def holds(values):
        low, high = interval(values)
        return low <= 0.0 <= high

    return count(holds, draw(name, np.random.default_rng(seeds), studies, seeds))


def told_apart(name: str, seeds: int, studies: int = STUDIES, corrected: bool = True) -> int:
    """Returns the number of A/A studies in which any variant is called better or worse.

    The four variants and their base have the same true mean.
    """

    def false(study):
        base, *others = study
        if not corrected:
            return any(compare(other, base, 1e-9).verdict in ("better", "worse") for other in others)
        found = verdicts({str(n): (other, base) for n, other in enumerate(others)}, 1e-9)
        return any(one.verdict in ("better", "worse") for one in found.values())

    return count(false, draw(name, np.random.default_rng(100 + seeds), studies, 1 + VARIANTS, seeds))


def leapt_apart(learn: float, seeds: int, variants: int, studies: int = STUDIES) -> int:
    """Returns the number of A/A studies with bimodal seeds in which any variant is called better or worse.

    Each seed learns the task with probability `learn`. It then ends at 1 − .002·|z|, and otherwise at .145 + .01·z.
    Here z is drawn from a standard normal distribution.
    """
    random = np.random.default_rng(700 + seeds)
    shape = (studies, 1 + variants, seeds)
    learned, failed = 1 - 0.002 * np.abs(random.normal(size=shape)), 0.145 + 0.01 * random.normal(size=shape)

    def false(study):
        base, *others = study
        found = verdicts({str(n): (other, base) for n, other in enumerate(others)}, 0.02)
        return any(one.verdict in ("better", "worse") for one in found.values())

    return count(false, np.where(random.random(shape) < learn, learned, failed))


def wrongly_claimed(name: str, seeds: int, studies: int = STUDIES, margin: float = 2.0) -> int:
    """Returns the number of studies with any false claim.

    Two variants have the same true mean as their base, and two are better by exactly the margin.
    """
    shift = np.array([0, 0, 0, margin, margin])[:, None]

    def false(study):
        base, *others = study + shift
        found = verdicts({str(n): (other, base) for n, other in enumerate(others)}, margin)
        said = [one.verdict for one in found.values()]
        return bool({"better", "worse"} & {*said[:2]} or {"worse", "same"} & {*said[2:]})

    return count(false, draw(name, np.random.default_rng(200 + seeds), studies, 1 + VARIANTS, seeds))


def found(name: str, seeds: int, difference: float, studies: int = STUDIES) -> int:
    """Returns the number of studies in which the variant that is better by `difference` is called better."""

    def right(study):
        return compare(study[0] + difference, study[1], 1e-9).verdict == "better"

    return count(right, draw(name, np.random.default_rng(300 + seeds), studies, 2, seeds))


def said_same(name: str, seeds: int, margin: float, studies: int = STUDIES) -> int:
    """Returns the number of studies of two equal variants in which they are called the same."""
    same = lambda study: compare(study[0], study[1], margin).verdict == "same"
    return count(same, draw(name, np.random.default_rng(400 + seeds), studies, 2, seeds))


def _tables(name: str, random: np.random.Generator, means: np.ndarray, studies: int, seeds: int) -> list[np.ndarray]:
    """Returns validation and test values of every lane [studies, seeds, rates], given the true mean of each rate."""
    lanes = means + math.sqrt(LUCK) * draw(name, random, studies, seeds, means.size)
    return [lanes + math.sqrt(1 - LUCK) * draw(name, random, *lanes.shape) for _ in ("valid", "test")]


def tuned_covered(
    name: str, seeds: int, rates: tuple[float, ...], studies: int = STUDIES, corrected: bool = True
) -> int:
    """Returns the number of studies whose interval at the chosen rate contains the true mean of that rate.

    `rates` are the true means of the learning rates.
    """
    means, held = np.array(rates, float), 0
    for valid, test in zip(*_tables(name, np.random.default_rng(500 + seeds), means, studies, seeds), strict=True):
        choice = choose(valid)
        low, high = interval(test[:, choice.best], tried=len(choice.contenders) if corrected else 1)
        held += low <= means[choice.best] <= high
    return int(held)


def tuned_apart(
    name: str,
    seeds: int,
    rates: tuple[float, ...],
    others: tuple[float, ...],
    studies: int = STUDIES,
    corrected: bool = True,
) -> int:
    """Returns the number of studies of two variants, each at its chosen rate, whose verdict is wrong.

    `rates` and `others` are the true means of the learning rates of the two variants. A verdict "better" or "worse" is
    wrong if the true means of the chosen rates do not differ in that direction.
    """
    random = np.random.default_rng(600 + seeds)
    means, wrong = (np.array(rates, float), np.array(others, float)), 0
    for study in zip(*(table for each in means for table in _tables(name, random, each, studies, seeds)), strict=True):
        a, b = choose(study[0]), choose(study[2])
        tried = (len(a.contenders), len(b.contenders)) if corrected else (1, 1)
        said = compare(study[1][:, a.best], study[3][:, b.best], 1e-9, tried=tried).verdict
        true = means[0][a.best] - means[1][b.best]
        wrong += (said == "better" and true <= 0) or (said == "worse" and true >= 0)
    return int(wrong)


def main(studies: int) -> None:
    """Prints the table."""
    print(f"{f'of {studies} studies':32}" + "".join(f"{name + f', {n} seeds':>20}" for name in NAMES for n in SEEDS))

    def row(label, cell):
        print(f"{label:32}" + "".join(f"{cell(name, seeds):>20}" for name in NAMES for seeds in SEEDS), flush=True)

    def share(hits, more=""):
        return f"{hits} {hits / studies:.1%}{more}"

    row("95% interval covers", lambda *at: share(covered(*at, studies)))
    row(f"A/A ×{VARIANTS}: told apart", lambda *at: share(told_apart(*at, studies)))
    row("  without correction", lambda *at: share(told_apart(*at, studies, corrected=False)))
    row("2 equal, 2 at the margin: ✗", lambda *at: share(wrongly_claimed(*at, studies)))
    for difference in (1.0, 2.0, 4.0):
        predicted = lambda seeds, size=difference: f" ({power(size, math.sqrt(2), seeds):.0%})"
        row(
            f"power at {difference:g} sd (theory)",
            lambda name, seeds: share(found(name, seeds, difference, studies), predicted(seeds)),  # noqa: B023
        )
    for margin in (1.0, 2.0, 4.0):
        row(f"equal, same within {margin:g} sd", lambda *at: share(said_same(*at, margin, studies)))  # noqa: B023
    for label, rates in PROFILES.items():
        for corrected, how in ((True, "covers"), (False, "  uncorrected")):
            row(f"{label}: {how}", lambda *at: share(tuned_covered(*at, rates, studies, corrected)))  # noqa: B023
    for label, (rates, others) in TUNED.items():
        for corrected, how in ((True, "✗"), (False, "  uncorrected")):
            row(f"{label}: {how}", lambda *at: share(tuned_apart(*at, rates, others, studies, corrected)))  # noqa: B023
    few = (2, *SEEDS)
    print(f"\n{'A/A, a seed learns or does not':32}" + "".join(f"{f'{n} seeds':>20}" for n in few))
    for learn in LEARN:
        for variants in (1, 2, 7, 22):
            cells = (share(leapt_apart(learn, seeds, variants, studies)) for seeds in few)
            print(
                f"{f'×{variants}, {learn:.0%} learn: told apart':32}" + "".join(f"{cell:>20}" for cell in cells),
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STUDIES)
