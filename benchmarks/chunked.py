"""Training passes of linear mechanisms, compared with jax-linear-attention's chunked form on the same arrays.

Claim: at least twice as fast, and gated-linear and kda at least four times.

Command: python benchmarks/chunked.py [--lengths T …] [--mechanisms NAME …] [--save]

The script needs jax-linear-attention, which needs Python 3.12 and jax 0.11.2. It uses one example, 8 heads, widths of
64 (16 for the state of mamba) and float32. jax-linear-attention uses chunks of 64 tokens; ours chooses its own. The
pass computes the outputs and the gradients of every array. Before any measurement both outputs must agree within 1e-3
of the largest value.

Expected: missed for one gate per head. On two cores of an EPYC cloud machine without other load, jax 0.11.2, `--repeat
5`: lightning and ssd take 16.8 and 17.3 ms at 1,024 tokens and 88.2 and 88.8 at 4,096, theirs 1.02 and 1.16 times as
long. Both compute the same products of 64 × 64 × 64. The others are not measured yet without other load.
"""

from dataclasses import replace

import jax
import numpy as np

from attnlab.analysis.measure import Program, compiled, quartiles, timed, times_faster
from attnlab.bench.calls import with_gradients
from attnlab.bench.peer_parity import jla
from attnlab.bench.peer_parity.comparison import PeerFunction
from attnlab.bench.script import claim, facts, keep, options, say

FORMS = ("ops.chunked.", "ops.rwkv7.rwkv7_chunked", "ops.log_linear.log_linear_simple_gla_chunked", 'impl="chunked"')
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


def main() -> None:
    """Measure, print the results and check the claim."""
    with jax.numpy_rank_promotion("allow"):
        peers = {peer.ours.name: peer for peer in jla.functions(chunk=64) if any(x in peer.function for x in FORMS)}
        chosen = options(__doc__, [1024, 4096], 7, list(peers))
        results, ratios = {}, {}
        for name in chosen.mechanisms:
            for T in chosen.lengths:
                seconds = timed(pair(peers[name], T), chosen.repeat)
                ours, theirs = (1000 * quartiles(seconds[each]).median for each in ("ours", "theirs"))
                ratio = times_faster(seconds["ours"], seconds["theirs"])
                text = f"{ours:.1f} ms, theirs {theirs:.1f} ms, {ratio.median:.2f} times as long"
                say(f"{name}, T={T}: {text} ({ratio.low:.2f} to {ratio.high:.2f}; {peers[name].function})")
                results[f"{name}/{T}"] = seconds
                ratios.setdefault(name, []).append(ratio)
        for name, found in ratios.items():
            print(claim(f"{name}, {peers[name].function}", found, least=LEAST.get(name, 2)))
    if chosen.save:
        keep(__file__, {"machine": facts(), "jax-linear-attention": peers[name].version, "seconds": results})


if __name__ == "__main__":
    main()
