"""Causal linear attention by blocks, with gated and delta variants, against fast-transformers' C++ causal product.

Claim: forward+backward at least 6 times faster than fast-transformers' causal product, growing no faster than T^1.1 up
to T = 16,384; the delta rule and gates within 4 times the time of plain linear attention.

Command: python benchmarks/linear.py [--save]      (needs the `peers` extra; two and a half minutes on two cores)

`linear` is compared with the library's product including feature map and normaliser, as its own layer has them.
`product`, which has neither, is compared with the product alone.

Expected: the last lines say which part of the claim holds on this machine. On two cores of an EPYC cloud machine
without other load, jax 0.10.2, torch 2.13.0: forward+backward is 1.42 to 1.72 times faster than the layer and 1.13 to
1.68 times faster than the product alone, growing as T^1.01 (0.95-1.07) and T^0.98 (0.87-1.09). So six times is missed.
Retention, lightning and ssd take 1.1 to 1.3 times as long as linear, gated-linear 1.8 to 2.5, delta 2.0 to 2.4,
gated-delta 2.4 to 2.5, kda 3.1 to 3.6.

What bounds it: six times is not reached because of the rate of small products. A pass takes some 115 thousand
operations per token and head, 3.8 GFLOP at T = 4,096, nearly all in products of 64 × 64 × 64. The compiler runs these
at 33 GFLOP/s on this machine (jax 0.12: 65), where one square product of 1,024 reaches 178. At this rate a pass would
take 115 ms, and 98 were measured; six times faster would be 23. Tried on the bare product, in two runs, against 98 ms:
two and four chunks at once 95 and 97, eight 107, all of a sequence at once 150, chunks of 128 120, one head after
another 111. On a Xeon copies take as long as products in the profile of retention in `chunked.py`.
"""

from dataclasses import asdict

from attnlab.analysis.growth import growth
from attnlab.bench.calls import BOTH
from attnlab.bench.measuring import BenchConfig
from attnlab.bench.relative import relative_table, side_by_side
from attnlab.bench.script import claim, claim_growth, finish, options, run, say, this_machine
from attnlab.console.tables import print_table
from attnlab.mechanisms import MECHANISMS, Linear
from attnlab.ops.feature import FEATURES

PRODUCT = Linear(feature=FEATURES["identity"], normalise=False)
KIN = ("retention", "lightning", "ssd", "gated-linear", "delta", "gated-delta", "kda")


def main() -> None:
    """Measure, print the results and check the claim."""
    chosen = options(__doc__, [1024, 2048, 4096, 8192, 16384], 7)
    linear = {"linear": MECHANISMS["linear"], "product": PRODUCT}
    plan = BenchConfig(linear, chosen.lengths, masks=("causal",), repeat=chosen.repeat, peers=True)
    found, record = run(__file__, plan, chosen.save)

    kin = {"linear": linear["linear"]} | {name: MECHANISMS[name] for name in KIN if name in MECHANISMS}
    plan = BenchConfig(kin, [T for T in chosen.lengths if T <= 4096], masks=("causal",), repeat=chosen.repeat)
    beside = side_by_side(plan, "linear", BOTH, say)
    print_table(relative_table(beside, "linear", BOTH))

    both, claims = [each for each in found if each.which == BOTH], []
    for name in linear:
        cells = [each for each in both if each.name == name]
        for peer in dict.fromkeys(peer for each in cells for peer in each.peers):
            pairs = [each for each in cells if peer in each.peers]
            times, shares = [each.peers[peer].times for each in pairs], [each.share(this_machine()) for each in pairs]
            claims.append(claim(f"{name}, time of {peer} / time of ours, {BOTH}", times, least=6, shares=shares))
        fit = growth({each.T: each.seconds for each in cells})
        claims.append(claim_growth(f"growth of {name}", fit, most=1.1))
    for name in list(kin)[1:]:
        claims.append(
            claim(f"time of {name} / time of linear", [each.times for each in beside if each.name == name], most=4)
        )
    finish(__file__, chosen.save, claims, **record, relative=[asdict(each) for each in beside])


if __name__ == "__main__":
    main()
