"""How much of an epoch of Multi30k is padding, by how many lengths its batches come in.

Claim: in the ten lengths that the task has of itself, at most 15% of the symbols of an epoch are padding.

Command: ATTNLAB_DATA=... python benchmarks/padding.py     (half a minute)

Both directions, each with the joint BPE of experiments/multi30k_tiny.py, every training pair once; padding is counted
on both sides of a pair. Edges are those that leave the least of it; each length is a shape to compile for. `--lengths`
are the counts of lengths; the claim is about the most of them.

Expected: counted, the same on every machine and in both directions: 70.3% of padding in one length, 39.5% in two, 22.3%
in four, 14.4% in eight, 14.0% in ten.
"""

from dataclasses import replace

from attnlab.bench.script import claim, keep, options
from attnlab.data.text.units import Bpe
from attnlab.tasks.text.translation import Multi30k

MOST = 0.15


def main() -> None:
    """Count, print, judge."""
    chosen = options(__doc__, [1, 2, 4, 8, Multi30k().buckets], 1)
    found: dict[str, dict[int, float]] = {}
    for source, target in (("de", "en"), ("en", "de")):
        task = Multi30k(source=source, target=target, units=Bpe(size=10_000))
        shares = {count: replace(task, buckets=count).load().buckets.padding for count in sorted(set(chosen.lengths))}
        found[f"{source} to {target}"] = shares
        told = ", ".join(f"{share:.1%} in {count}" for count, share in shares.items())
        print(f"{source} to {target}: padding {told} {'length' if list(shares)[-1] == 1 else 'lengths'}")
    most = max(chosen.lengths)
    print(claim(f"padding in {most} lengths", [shares[most] for shares in found.values()], most=MOST))
    if chosen.save:
        keep(__file__, {"padding": found})


if __name__ == "__main__":
    main()
