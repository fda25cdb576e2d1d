"""What every mechanism costs beside full attention as sequences grow (Long Range Arena, Tay et al. 2021, table 2).

Claim: none of ours; the published shape is that at 4,096 tokens Performer, linear and Linformer are 5.5 to 5.7 times
faster than full attention, local 5.3, Sinkhorn 3.8, BigBird 1.1, and Reformer slower (0.8); memory a ninth for linear.

Command: python benchmarks/length.py [--save]      (twelve minutes on two cores)

One attention of 8 heads of width 64, forward+backward, float32, to both sides; mechanisms that read the past only are
measured causally, and say so. Published are training steps a second of a whole model (byte text, on TPU), with its
projections and feed-forward layers, which all have in common: ratios of attention alone lie further from 1.

Expected: times and memory in units of full attention's. On two cores of an EPYC cloud machine with a little other work,
jax 0.10.2, at 4,096 tokens, times faster (quartiles): linear 43 (23-50), performer 19 (8-20), sinkhorn 14, linformer
11, bigbird 5.7, window 5.5 (4.4-7.1), reformer 0.3 with the 8 buckets that it had at every length; blockwise softmax
1.8, gated-linear 11, delta 11, ssd 22; slower are local-p (0.5), reformer, and Taylor and ReBased with all their
features (0.6; 1.0). Memory: linear, window, linformer and blockwise softmax 7 to 9 hundredths. BigBird and Sinkhorn
stand further forward than in the published order, Performer behind linear.
"""

from dataclasses import asdict

from attnlab.lab.benching.calls import BOTH, MASKS
from attnlab.lab.benching.measuring import Cells
from attnlab.lab.benching.relative import relative_table, side_by_side
from attnlab.lab.benching.script import facts, keep, options, say
from attnlab.lab.verbs import print_table
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
    """Measure and print, the published beside."""
    chosen = options(__doc__, [1024, 2048, 3072, 4096], 5)
    plan = Cells(MECHANISMS, chosen.lengths, masks=MASKS, repeat=chosen.repeat)
    found = side_by_side(plan, "softmax", BOTH, say)
    print_table(relative_table(found, "softmax", BOTH))
    for name, published in PUBLISHED.items():
        if cells := [each for each in found if each.name == name]:
            last = max(cells, key=lambda each: each.T)
            print(f"{name:<10} {1 / last.times.median:5.1f} times faster at T={last.T}; published {published} at 4,096")
    if chosen.save:
        keep(__file__, {"machine": facts(), "relative_to": "softmax", "measured": [asdict(each) for each in found]})


if __name__ == "__main__":
    main()
