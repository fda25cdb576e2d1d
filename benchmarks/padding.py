"""The share of padding in an epoch of Multi30k, by the number of lengths of its batches.

Claim: with the task's default of ten lengths, at most 15% of the symbols of an epoch are padding.

Command: ATTNLAB_DATA=... python benchmarks/padding.py     (half a minute)

Both directions are counted, each with the joint BPE of experiments/multi30k_tiny.py and with every training pair once.
Padding is counted on both sides of a pair. The edges between lengths are those that leave the least padding; each
length is a shape to compile for. `--lengths` are the numbers of lengths; the claim is about the largest of them.

Expected: counted, the same on every machine and in both directions: 70.3% of padding with one length, 39.5% with two,
22.3% with four, 14.4% with eight, 14.0% with ten.
"""

from dataclasses import replace

from attnlab.bench.script import claim, finish, options
from attnlab.data.text.units import Bpe
from attnlab.tasks.text.translation import Multi30k

MOST = 0.15


def main() -> None:
    """Count, print the results and check the claim."""
    chosen = options(__doc__, [1, 2, 4, 8, Multi30k().buckets], 1)
    found: dict[str, dict[int, float]] = {}
    for source, target in (("de", "en"), ("en", "de")):
        task = Multi30k(source=source, target=target, units=Bpe(size=10_000))
        shares = {count: replace(task, buckets=count).load().buckets.padding for count in sorted(set(chosen.lengths))}
        found[f"{source} to {target}"] = shares
        told = ", ".join(f"{share:.1%} in {count}" for count, share in shares.items())
        print(f"{source} to {target}: padding {told} {'length' if list(shares)[-1] == 1 else 'lengths'}")
    most = max(chosen.lengths)
    claims = [claim(f"padding in {most} lengths", [shares[most] for shares in found.values()], most=MOST)]
    finish(__file__, chosen.save, claims, padding=found)


if __name__ == "__main__":
    main()
