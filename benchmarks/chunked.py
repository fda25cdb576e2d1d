"""Training passes of linear mechanisms, compared with jax-linear-attention's chunked form on the same arrays.

Claim: at least twice as fast, and gated-linear and kda at least four times.

Command: python benchmarks/chunked.py [--lengths T …] [--mechanisms NAME …] [--save]

The script needs jax-linear-attention, which needs Python 3.12 and jax 0.11.2. It uses one example, 8 heads, widths of
64 (16 for the state of mamba) and float32. jax-linear-attention uses chunks of 64 tokens; ours chooses its own. The
pass computes the outputs and the gradients of every array. Before any measurement both outputs must agree within 1e-3
of the largest value.

Expected: kept for gated-delta-2, hgrn2, rwkv7 and mamba, missed for the others; gated-linear and kda keep it at 1,024
tokens on the first machine. On two quiet cores of an EPYC cloud machine, jax 0.11.2, `--repeat 5`: ms of ours, ms of
theirs, and how many times as long theirs takes (quartiles):

| mechanism | 1,024 tokens | times | 4,096 tokens | times |
|---|---|---|---|---|
| retention | 15.9, 15.3 | 0.96 (0.95 to 1.07) | 82.8, 98.2 | 1.21 (1.18 to 1.25) |
| lightning | 16.6, 17.8 | 1.00 (0.99 to 1.06) | 87.8, 114.2 | 1.20 (0.80 to 1.26) |
| ssd | 17.9, 17.8 | 0.95 (0.94 to 1.01) | 92.6, 104.4 | 1.13 (1.12 to 1.21) |
| gated-linear | 28.4, 129.1 | 4.84 (4.77 to 4.90) | 143.7, 513.4 | 3.89 (3.28 to 4.00) |
| delta | 52.8, 53.7 | 0.86 (0.84 to 0.97) | 187.0, 224.5 | 1.26 (1.18 to 1.28) |
| gated-delta | 63.3, 64.7 | 0.99 (0.98 to 1.02) | 204.7, 269.6 | 1.38 (1.36 to 1.38) |
| kda | 66.7, 259.6 | 4.29 (3.47 to 4.61) | 242.2, 827.3 | 3.60 (3.03 to 3.84) |
| gated-delta-2 | 68.4, 263.9 | 3.51 (3.26 to 3.98) | 303.3, 914.4 | 3.32 (2.34 to 3.53) |
| delta-product | 136.0, 159.0 | 1.24 (1.06 to 1.44) | 419.4, 532.2 | 1.24 (1.24 to 1.24) |
| mlstm | 18.3, 18.1 | 0.99 (0.98 to 1.35) | 90.0, 115.9 | 1.29 (1.23 to 1.33) |
| mamba3 | 34.8, 55.8 | 1.60 (1.49 to 1.64) | 172.4, 224.1 | 1.33 (1.28 to 1.34) |
| hgrn2 | 29.6, 124.0 | 4.60 (4.01 to 4.62) | 148.2, 508.6 | 3.41 (2.95 to 3.43) |
| rwkv7 | 109.7, 1010.9 | 9.85 (8.84 to 10.34) | 520.4, 4835.5 | 8.23 (7.51 to 15.90) |
| log-linear | 84.4, 127.2 | 1.51 (1.48 to 1.56) | 424.1, 569.0 | 1.34 (1.31 to 1.37) |

On two quiet cores of an Intel Xeon cloud machine (247 GFLOP/s for a large product), jax 0.11.2, `--repeat 5`:

| mechanism | 1,024 tokens | times | 4,096 tokens | times | of the roofline, at the smaller ratio |
|---|---|---|---|---|---|
| retention | 26.7, 22.9 | 0.86 (0.80 to 0.86) | 136.9, 132.3 | 0.98 (0.98 to 1.04) | 16% |
| ssd | 30.3, 25.2 | 0.88 (0.85 to 0.91) | 145.7, 157.7 | 1.09 (1.08 to 1.12) | 14% |
| gated-linear | 61.0, 191.3 | 3.45 (2.93 to 3.54) | 218.8, 599.5 | 2.76 (2.75 to 2.90) | 6% |
| delta | 79.4, 80.8 | 0.95 (0.82 to 1.02) | 292.3, 298.3 | 1.01 (0.99 to 1.11) | 12% |
| gated-delta | 108.3, 98.9 | 1.04 (0.78 to 1.11) | 308.2, 344.6 | 1.11 (1.08 to 1.12) | 9% |
| kda | 153.8, 542.2 | 3.52 (3.34 to 3.58) | 509.1, 1470.5 | 2.87 (2.87 to 2.89) | 5% |
| mamba | 68.7, 233.4 | 3.36 (3.31 to 3.98) | 270.3, 975.5 | 3.59 (3.53 to 3.61) | 3% |

What bounds it: small products, and moving data between them. For one gate per head both sides compute the same products
of 64 × 64 × 64. A profile of retention at 4,096 tokens on the Xeon, jax 0.10.2, in ms of a thread: copies and
transposes of whole arrays 60, products 60, elementwise operations 26, slices of chunks read 23 and written 20, loops
14, zeros 7. The copies move the axis of chunks before that of heads, as a scan needs it. A scan over indices could
slice chunks in place, but its gradient would have to be written by hand, which excludes forward-mode differentiation.
In a language model copies take less: with retention, width 128 and 512 symbols, 25 of 201 ms. Operations and the speed
that both reach, on the Xeon at 4,096 tokens, `--repeat 3`, where the ratios were 1.20, 1.06, 1.15 and .99:

| mechanism | GFLOP, ours and theirs | GFLOP/s, ours and theirs |
|---|---|---|
| mamba3 | 4.0, 5.9 | 17, 21 |
| log-linear | 24.9, 23.4 | 41, 37 |
| delta-product | 17.9, 13.8 | 35, 23 |
| delta | 8.9, 6.9 | 35, 27 |

Twice as fast would be 75 GFLOP/s for log-linear and 60 for delta-product. Neither side comes near that. Mamba has no
products: its time is exponentials and passes over memory. On a CPU ours processes the tokens of a chunk one after
another, without products of decays. With the associative scan that it used before, theirs took 1.89 and 1.69 times as
long on the EPYC.
"""

from dataclasses import replace

import jax
import numpy as np

from attnlab.analysis.measure import Program, compiled, quartiles, timed, times_faster
from attnlab.bench.calls import with_gradients
from attnlab.bench.peer_parity import jla
from attnlab.bench.peer_parity.comparison import PeerFunction
from attnlab.bench.script import claim, finish, options, say, share

LEAST = {"gated-linear": 4, "kda": 4}


def pair(peer: PeerFunction, T: int) -> dict[str, Program]:
    """Returns our training pass and theirs, on the same arrays of `T` tokens.

    Raises:
        ValueError: if their outputs differ.
    """
    mechanism = peer.ours.mechanism.with_length(T)
    ours = replace(peer.ours, mechanism=mechanism, B=1, T=T, H=8, K=16 if peer.ours.name == "mamba" else 64, V=64)
    arrays = {name: x.astype(np.float32) for name, x in ours.inputs("whole").items()}
    runs = {"ours": ours.forms()["whole"], "theirs": peer.forms()["whole"]}
    target = np.random.default_rng(T).standard_normal(jax.eval_shape(runs["ours"], arrays).shape).astype(np.float32)
    programs = {name: compiled(with_gradients(run), target, arrays) for name, run in runs.items()}
    one, other = (program.answer()[0] for program in programs.values())
    if not (error := np.max(np.abs(one - other)) / np.max(np.abs(one))) < 1e-3:
        raise ValueError(f"{peer.ours.name} and {peer.function}: outputs differ by {error:.1e}")
    return programs


def cost(program: Program, seconds: list[float]) -> str:
    """Describe the median time of a pass, its operations as counted from the trace, and the speed that it reaches."""
    middle, flops = quartiles(seconds).median, program.flops or 0
    return f"{1000 * middle:.1f} ms ({flops / 1e9:.1f} GFLOP, {flops / 1e9 / middle:.0f} GFLOP/s)"


def main() -> None:
    """Measure, print the results and check the claim."""
    with jax.numpy_rank_promotion("allow"):
        peers = {peer.ours.name: peer for peer in jla.chunked_forms()}
        chosen = options(__doc__, [1024, 4096], 7, list(peers))
        results, ratios, shares = {}, {}, {}
        for name in chosen.mechanisms:
            for T in chosen.lengths:
                programs = pair(peers[name], T)
                seconds = timed(programs, chosen.repeat)
                ratio = times_faster(seconds["ours"], seconds["theirs"])
                ours, theirs = (cost(programs[each], seconds[each]) for each in ("ours", "theirs"))
                text = f"{ours}, theirs {theirs}, {ratio.median:.2f} times as long"
                say(f"{name}, T={T}: {text} ({ratio.low:.2f} to {ratio.high:.2f}; {peers[name].function})")
                flops = {each: program.flops for each, program in programs.items()}
                results[f"{name}/{T}"] = {"seconds": seconds, "flops": flops}
                ratios.setdefault(name, []).append(ratio)
                shares.setdefault(name, []).append(share(programs["ours"], seconds["ours"]))
        claims = [
            claim(
                f"{name}, time of {peers[name].function} / time of ours",
                found,
                least=LEAST.get(name, 2),
                shares=shares[name],
            )
            for name, found in ratios.items()
        ]
    finish(__file__, chosen.save, claims, peer=peers[name].version, measured=results)


if __name__ == "__main__":
    main()
