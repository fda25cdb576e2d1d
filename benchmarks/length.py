"""The cost of mechanisms relative to full attention, as sequences grow (Long Range Arena, Tay et al. 2021, table 2).

Claim: none of our own. The published result is that at 4,096 tokens Performer, linear and Linformer are 5.5 to 5.7
times faster than full attention, local 5.3, Sinkhorn 3.8, BigBird 1.1, and Reformer slower (0.8). Linear needs a ninth
of the memory.

Command: python benchmarks/length.py [--save]      (nine minutes on two cores)

The script measures one non-causal attention of 8 heads of width 64, forward+backward, float32. Mechanisms that are
causal only are measured causally, and their rows say so. The published values are training steps per second of a whole
model (byte text, on TPU), with its projections and feed-forward layers, which are common to all: ratios of attention
alone are further from 1.

Expected: times and memory in units of full attention's. On two cores of an EPYC cloud machine without other load, jax
0.10.2, in two runs, at 4,096 tokens, times faster: linear 52 and 13 (11-32), performer 13 and 17, linformer 13 and 11,
sinkhorn 10 and 10, window 5.8 and 4.9, bigbird 4.4 and 4.3, reformer 1.7 and 1.9; blockwise softmax 1.8 and 1.5,
gated-linear 6.2 and 8.9, delta 7.6 and 7.2, ssd 14. Memory: linear, window, linformer and blockwise softmax 7 to 9
hundredths. BigBird, Sinkhorn and Reformer are further ahead than in the published order. Linear's own time is some ten
milliseconds, so its ratio is the least certain. Taylor and ReBased have 4,161 and 4,096 features, no fewer than there
are tokens, and compute pairs by their kernel. Measured so with softmax alone they are 1.2 (1.1-1.8) and 1.8 (1.1-1.9)
times faster, in .17 and .22 of the memory; by their features they were .25 and .49, in 4.4 and 3.0 times the memory.
Local-p was .4 and .3 in 3.9 times the memory; measured again with softmax alone, after a query began to fetch its
window's keys, 7.8 (5.5-8.9) in .06.
"""

from dataclasses import asdict

from attnlab.bench.calls import BOTH, MASKS
from attnlab.bench.measuring import BenchConfig
from attnlab.bench.relative import relative_table, side_by_side
from attnlab.bench.script import finish, options, say
from attnlab.console.tables import print_table
from attnlab.mechanisms import MECHANISMS

# Times faster than full attention at 4,096 tokens.
PUBLISHED = {
    "linformer": 5.5,
    "performer": 5.7,
    "linear": 5.6,
    "window": 5.3,
    "sinkhorn": 3.8,
    "bigbird": 1.1,
    "reformer": 0.8,
}


def main() -> None:
    """Measure and print, with the published values."""
    chosen = options(__doc__, [1024, 2048, 3072, 4096], 5)
    plan = BenchConfig(MECHANISMS, chosen.lengths, masks=MASKS, repeat=chosen.repeat)
    found = side_by_side(plan, "softmax", BOTH, say)
    print_table(relative_table(found, "softmax", BOTH))
    for name, published in PUBLISHED.items():
        if cells := [each for each in found if each.name == name]:
            last = max(cells, key=lambda each: each.T)
            print(f"{name:<10} {1 / last.times.median:5.1f} times faster at T={last.T}; published {published} at 4,096")
    finish(__file__, chosen.save, [], relative_to="softmax", measured=[asdict(each) for each in found])


if __name__ == "__main__":
    main()
