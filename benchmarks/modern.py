"""Modern mechanisms: linear ones against plain linear attention, softmax with gates and sinks by blocks, and hybrids.

Claim: the training pass of each linear mechanism takes at most 5 times as long as that of plain linear attention, and
grows no faster than T^1.1 up to T = 8,192. Forgetting attention, sinks and stick-breaking need memory linear in T. The
training step of a hybrid takes as long as the mean of its parts, within 5%.

Command: python benchmarks/modern.py [--save]      (13 minutes on two cores)

Expected: kept in part. On two quiet cores of an Intel Xeon cloud machine, jax 0.10.2: how many times as long as plain
linear attention a training pass takes, and the power of T with which it grows (95% interval):

| mechanism | T = 1,024 | T = 8,192 | growth |
|---|---|---|---|
| gated-delta | 2.28 | 2.15 | 1.07 (1.02 to 1.11) |
| gated-delta-2 | 3.32 | 3.01 | 1.07 (0.99 to 1.15) |
| delta-product | 4.51 | 4.33 | 1.17 (1.00 to 1.34) |
| hgrn2 | 1.95 | 1.89 | 1.04 (0.97 to 1.10) |
| mlstm | 1.37 | 1.23 | 1.11 (1.03 to 1.20) |
| rwkv7 | 4.69 | 3.98 | 1.02 (0.96 to 1.08) |
| mamba | 5.86 | 6.38 | 0.91 (0.86 to 0.95) |
| mamba3 | 1.99 | 1.93 | 1.06 (0.96 to 1.16) |
| gsa | 4.38 | 3.67 | 1.04 (0.96 to 1.11) |
| mesa | 44.9 | 38.2 | 1.10 (1.05 to 1.16) |
| log-linear | 5.58 | 5.79 | 1.07 (1.00 to 1.14) |
| power | 2.97 | 25.5 | 1.04 (0.99 to 1.09) |

By blocks, softmax with a sink takes 1.02 to 1.07 times as long as softmax, forgetting attention 1.20 to 1.54,
stick-breaking 3.80 to 6.03. The memory of none grows faster than that of softmax by blocks, which is linear in T. A
step of `gated-delta*3+softmax` takes 340.6 ms, and its parts 392.9 and 197.4: .99 of their mean.

Mamba was measured later than the others, beside linear attention, after its tokens were processed one after another on
a CPU; an associative scan of 32 tokens took 21.0 and 19.0 times as long.

What bounds it: four take more than 5 times as long, because they compute more. Mamba has a decay for each pair of 64
states and 64 channels, which no matrix product can apply, mesa solves 64 equations at each token, log-linear attention
reads one state for each power of two, and the state of power attention has 2,080 features in place of 64. Up to 2,048
tokens power attention is cheaper, because it computes the pairs of tokens instead. No growth is clearly above 1.1.
"""

from dataclasses import asdict
from statistics import median

from attnlab.analysis.growth import growth
from attnlab.analysis.measure import timed, times_faster
from attnlab.bench.calls import BOTH
from attnlab.bench.measuring import BenchConfig
from attnlab.bench.relative import Relative, relative_table, side_by_side
from attnlab.bench.script import Claim, claim, claim_growth, finish, options, say, share
from attnlab.bench.steps import steps
from attnlab.console.tables import print_table
from attnlab.mechanisms import MECHANISMS, Forgetting, Softmax, StickBreaking
from attnlab.models import Language
from attnlab.modules.position import POSITIONS
from attnlab.pattern import Pattern
from attnlab.tasks.synthetic.recall import Recall

LINEAR = (
    "gated-delta", "gated-delta-2", "delta-product", "hgrn2", "mlstm", "rwkv7", "mamba", "mamba3", "gsa", "mesa",
    "log-linear", "power",
)  # fmt: skip
BLOCKS = {
    "softmax": Softmax(block=256),
    "softmax-sink": Softmax(block=256, sink="learned"),
    "forgetting": Forgetting(block=256),
    "stick-breaking": StickBreaking(block=256),
}


def linear(lengths: list[int], repeat: int) -> tuple[list[Claim], list[Relative]]:
    """Compare the training pass of linear mechanisms with that of plain linear attention.

    Returns:
        The claims and the measurements.
    """
    mechanisms = {name: MECHANISMS[name] for name in ("linear", *LINEAR)}
    found = side_by_side(BenchConfig(mechanisms, lengths, masks=("causal",), repeat=repeat), "linear", BOTH, say)
    print_table(relative_table(found, "linear", BOTH))
    lines = []
    for name in LINEAR:
        cells = [each for each in found if each.name == name]
        lines.append(claim(f"time of {name} / time of linear", [each.times for each in cells], most=5))
        lines.append(claim_growth(f"growth of {name}", growth({each.T: each.seconds for each in cells}), most=1.1))
    return lines, found


def blocks(lengths: list[int], repeat: int) -> tuple[list[Claim], list[Relative]]:
    """Compare softmax by blocks with gates, sinks and sticks. Returns the claims and the measurements."""
    found = side_by_side(BenchConfig(BLOCKS, lengths, masks=("causal",), repeat=repeat), "softmax", BOTH, say)
    print_table(relative_table(found, "softmax", BOTH))
    table = {each.T: each.memory for each in found if each.name == "softmax"}
    print(f"lengths {', '.join(map(str, table))}: memory is relative to that of blockwise softmax")
    lines = []
    for name in BLOCKS:
        cells = [each for each in found if each.name == name]
        lines.append(claim(f"memory of {name} by blocks", [each.memory for each in cells if each.memory], most=2))
    return lines, found


def hybrids(repeat: int) -> tuple[list[Claim], dict[str, list[float]]]:
    """Compare the training step of a hybrid with the steps of its parts. Returns the claims and the seconds."""
    task = Recall(vocabulary=64, pairs=64, queries=64)
    softmax, delta = MECHANISMS["softmax"], MECHANISMS["gated-delta"]
    kinds = {"softmax": softmax, "gated-delta": delta, "gated-delta*3+softmax": Pattern((delta,) * 3 + (softmax,))}
    plain = Language(width=128, heads=4, layers=4, position=POSITIONS["none"])
    make = lambda mechanism: Language(**{**vars(plain), "mechanism": mechanism})
    programs = {name: steps(make(mechanism), task.load(), 16, 4) for name, mechanism in kinds.items()}
    seconds = timed(programs, repeat)
    shares = [3 * d / 4 + s / 4 for d, s in zip(seconds["gated-delta"], seconds["softmax"], strict=True)]
    whole = times_faster(shares, seconds["gated-delta*3+softmax"])
    print(", ".join(f"{name} {median(values) / 4 * 1e3:.1f} ms per step" for name, values in seconds.items()))
    reached = [share(programs["gated-delta*3+softmax"], seconds["gated-delta*3+softmax"])]
    return [claim("time of a hybrid's step / mean of its parts", [whole], most=1.05, shares=reached)], seconds


def main() -> None:
    """Measure, print the results and check the claim."""
    chosen = options(__doc__, [1024, 2048, 4096, 8192], 7)
    claims, plain = linear(chosen.lengths, chosen.repeat)
    more, by_blocks = blocks([T for T in chosen.lengths if T <= 4096], min(chosen.repeat, 5))
    last, seconds = hybrids(chosen.repeat)
    claims += more + last
    relative = {"linear": plain, "softmax by blocks": by_blocks}
    measured = {base: [asdict(each) for each in found] for base, found in relative.items()}
    finish(__file__, chosen.save, claims, relative_to=measured, hybrid=seconds)


if __name__ == "__main__":
    main()
