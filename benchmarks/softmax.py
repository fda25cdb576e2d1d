"""Blockwise softmax attention beside torch and jax.nn.

Claim: the same result, to rounding, 1.3 times faster than torch's scaled_dot_product_attention under the causal mask
and 1.15 times under none, 4 times faster than jax.nn.dot_product_attention, forwards and with gradients, in memory that
grows no faster than T^1.05.

Command: python benchmarks/softmax.py [--save]     (needs the `peers` extra; about ten minutes on two cores)

Expected: the last lines say which part of the claim this machine keeps.
"""

from attnlab.lab.bench.calls import MASKS, PASSES
from attnlab.lab.bench.measuring import Measured, Plan, growths
from attnlab.lab.bench.script import claim, options, run
from attnlab.mechanisms import MECHANISMS

LEAST = {("torch", "causal"): 1.3, ("torch", "full"): 1.15, ("jax.nn", "causal"): 4.0, ("jax.nn", "full"): 4.0}


def claims(found: list[Measured]) -> list[str]:
    """A line for each part of the claim."""
    lines = []
    for (peer, mask), least in LEAST.items():
        for which in PASSES:
            cells = [each for each in found if (each.mask, each.which) == (mask, which) and peer in each.beside]
            lines.append(claim(f"{peer}, {mask}, {which}", [each.beside[peer].times for each in cells], least=least))
    exponents = [fits["memory"].exponent for fits in growths(found).values() if fits["memory"]]
    apart = [other.difference for each in found for other in each.beside.values()]
    return [*lines, claim("growth of memory", exponents, most=1.05), claim("difference of answers", apart, most=1e-4)]


def main() -> None:
    """Measure, print, judge."""
    chosen = options(__doc__, [512, 1024, 2048, 4096, 8192], 9)
    name = "softmax-blockwise"
    plan = Plan({name: MECHANISMS[name]}, chosen.lengths, masks=MASKS, repeat=chosen.repeat, peers=True)
    print("\n".join(claims(run(__file__, plan, chosen.save))))


if __name__ == "__main__":
    main()
