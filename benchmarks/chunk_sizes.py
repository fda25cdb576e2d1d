"""Training passes of chunked mechanisms with chunks of 16 to 128 tokens, compared with the default size.

Claim: no other size is more than 1.15 times faster than the default.

Command: python benchmarks/chunk_sizes.py [--lengths T …] [--mechanisms NAME …] [--save]     (eight minutes)

The script measures one causal attention of 8 heads of width 64, forward+backward, float32. The field is `chunk`, or
`block` for linear attention. If another size is faster on your machine, set it for an experiment:
`attnlab run FILE model.mechanism.chunk=128`. The size changes results only by rounding.

Expected: TODO
"""

from dataclasses import replace

from attnlab.analysis.measure import Program, quartiles, timed, times_faster
from attnlab.bench.calls import BOTH, prepare
from attnlab.bench.script import claim, finish, options, say, share
from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.chunked import Chunked

MOST = 1.15
SIZES = (16, 32, 64, 128)
HEADS, WIDTH = 8, 64
NAMES = ["linear", *(name for name, each in MECHANISMS.items() if isinstance(each, Chunked))]


def programs(mechanism: Mechanism, T: int) -> dict[str, Program]:
    """Return the training pass of `T` tokens by the size of a chunk, for sizes up to `T`, the default size first."""
    field = "chunk" if isinstance(mechanism, Chunked) else "block"
    sizes = [size for size in dict.fromkeys([getattr(mechanism, field), *SIZES]) if size <= T]
    made = {str(size): prepare(replace(mechanism, **{field: size}), "causal", BOTH, T, HEADS, WIDTH) for size in sizes}
    return {size: program for size, program in made.items() if program}


def main() -> None:
    """Measure, print the results and check the claim."""
    chosen = options(__doc__, [1024, 4096], 5, NAMES)
    results: dict[str, dict[str, list[float]]] = {}
    claims = []
    for name in chosen.mechanisms:
        slower, shares = [], []
        for T in chosen.lengths:
            made = programs(MECHANISMS[name], T)
            seconds = results[f"{name}/{T}"] = timed(made, chosen.repeat)
            default, *others = seconds
            times = ", ".join(f"{size}: {1000 * quartiles(values).median:.1f} ms" for size, values in seconds.items())
            say(f"{name}, T={T}, default {times}")
            slower += [times_faster(seconds[size], seconds[default]) for size in others]
            shares += [share(made[default], seconds[default])] * len(others)
        claims.append(claim(f"{name}, default against other sizes", slower, most=MOST, shares=shares))
    finish(__file__, chosen.save, claims, seconds=results)


if __name__ == "__main__":
    main()
