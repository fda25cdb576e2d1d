"""Modern mechanisms: linear ones against plain linear attention, softmax with gates and sinks by blocks, and hybrids.

Claim: the training pass of each linear mechanism takes at most 5 times as long as that of plain linear attention, and
grows no faster than T^1.1 up to T = 8,192. Forgetting attention, sinks and stick-breaking need memory linear in T. The
training step of a hybrid takes as long as the mean of its parts, within 5%.

Command: python benchmarks/modern.py [--save]      (twenty minutes on two cores)

Expected: not measured yet on a machine without other load.
"""

from statistics import median

from attnlab.analysis.growth import growth
from attnlab.analysis.measure import timed, times_faster
from attnlab.bench.calls import BOTH
from attnlab.bench.measuring import BenchConfig
from attnlab.bench.relative import relative_table, side_by_side
from attnlab.bench.script import claim, claim_growth, facts, keep, options, say
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


def linear(lengths: list[int], repeat: int) -> list[str]:
    """Compare the training pass of linear mechanisms with that of plain linear attention. Returns the claims."""
    mechanisms = {name: MECHANISMS[name] for name in ("linear", *LINEAR)}
    found = side_by_side(BenchConfig(mechanisms, lengths, masks=("causal",), repeat=repeat), "linear", BOTH, say)
    print_table(relative_table(found, "linear", BOTH))
    lines = []
    for name in LINEAR:
        cells = [each for each in found if each.name == name]
        lines.append(claim(f"{name} against linear", [each.times for each in cells], most=5))
        lines.append(claim_growth(f"growth of {name}", growth({each.T: each.seconds for each in cells}), most=1.1))
    return lines


def blocks(lengths: list[int], repeat: int) -> list[str]:
    """Compare softmax by blocks with gates, sinks and sticks. Returns the claims."""
    found = side_by_side(BenchConfig(BLOCKS, lengths, masks=("causal",), repeat=repeat), "softmax", BOTH, say)
    print_table(relative_table(found, "softmax", BOTH))
    table = {each.T: each.memory for each in found if each.name == "softmax"}
    lines = [f"–      lengths {', '.join(map(str, table))}: memory is relative to that of blockwise softmax"]
    for name in BLOCKS:
        cells = [each for each in found if each.name == name]
        lines.append(claim(f"memory of {name} by blocks", [each.memory for each in cells if each.memory], most=2))
    return lines


def hybrids(repeat: int) -> list[str]:
    """Compare the training step of a hybrid with the steps of its parts. Returns the claims."""
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
    return [claim("step of a hybrid against the mean of its parts", [whole], most=1.05)]


def main() -> None:
    """Measure, print the results and check the claim."""
    chosen = options(__doc__, [1024, 2048, 4096, 8192], 7)
    lines = linear(chosen.lengths, chosen.repeat)
    lines += blocks([T for T in chosen.lengths if T <= 4096], min(chosen.repeat, 5))
    lines += hybrids(chosen.repeat)
    print("\n".join(lines))
    if chosen.save:
        keep(__file__, {"machine": facts(), "claims": lines})


if __name__ == "__main__":
    main()
