"""Training passes of chunked mechanisms with chunks of 16 to 128 tokens, compared with the default size.

Claim: no other size is more than 1.15 times faster than the default.

Command: python benchmarks/chunk_sizes.py [--lengths T …] [--mechanisms NAME …] [--save]    (17 minutes with --repeat 3)

The script measures one causal attention of 8 heads of width 64, forward+backward, float32. The field is `chunk`, or
`block` for linear attention. If another size is faster on your machine, set it for an experiment:
`attnlab run FILE model.mechanism.chunk=128`. The size changes results only by rounding.

Expected: kept. On two quiet cores of an Intel Xeon cloud machine, jax 0.10.2, `--repeat 3`, ms of a pass with chunks of
the default size, and with those of the fastest other size:

| mechanism | default | 1,024 tokens | 4,096 tokens |
|---|---|---|---|
| linear | 64 | 27.3, 24.2 (32) | 126.7, 126.1 (32) |
| retention | 64 | 28.7, 32.7 (32) | 125.8, 140.3 (32) |
| lightning | 64 | 29.4, 33.3 (32) | 146.6, 152.7 (32) |
| ssd | 64 | 29.5, 29.9 (32) | 137.7, 147.5 (32) |
| gated-linear | 32 | 52.6, 53.7 (64) | 257.9, 253.7 (64) |
| fast-weight | 64 | 137.5, 122.4 (32) | 526.9, 537.1 (32) |
| delta | 64 | 62.9, 61.1 (16) | 268.5, 258.3 (32) |
| gated-delta | 64 | 71.3, 64.9 (32) | 275.4, 271.3 (32) |
| kda | 32 | 113.2, 103.8 (64) | 446.8, 468.3 (64) |
| gated-delta-2 | 32 | 102.3, 102.6 (16) | 432.9, 454.3 (64) |
| delta-product | 64 | 162.6, 166.4 (32) | 645.2, 637.8 (32) |
| hgrn2 | 32 | 55.8, 63.8 (64) | 260.8, 263.7 (64) |
| mlstm | 64 | 40.7, 40.8 (128) | 149.0, 181.6 (128) |
| rwkv7 | 32 | 129.9, 132.9 (16) | 483.4, 497.9 (16) |
| mamba | 32 | 220.7, 219.9 (16) | 813.6, 854.1 (64) |
| mamba3 | 64 | 43.3, 48.8 (32) | 226.0, 237.2 (32) |
| gsa | 32 | 122.3, 126.0 (64) | 404.1, 421.7 (64) |
| mesa | 16 | 1251.2, 1337.3 (32) | 4399.3, 5423.6 (32) |

Mesa with chunks of 4 tokens, which are not tried here, is 1.12 times faster at 1,024 tokens. A table of the best sizes
of a machine would save an eighth at most, and runs would depend on it.
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
    """Return the training pass of `T` tokens by the size of a chunk, for sizes up to `T`, the default size first.

    Raises:
        ValueError: The default is larger than `T`.
    """
    field = "chunk" if isinstance(mechanism, Chunked) else "block"
    default = getattr(mechanism, field)
    if default > T:
        raise ValueError(f"the default chunk of {default} tokens is larger than {T=}")
    sizes = [size for size in dict.fromkeys([default, *SIZES]) if size <= T]
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
        claims.append(claim(f"{name}, time of the default / time of another size", slower, most=MOST, shares=shares))
    finish(__file__, chosen.save, claims, seconds=results)


if __name__ == "__main__":
    main()
