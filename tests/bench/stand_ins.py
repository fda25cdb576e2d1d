"""Stand-ins for peers that need no installation."""

import numpy as np

from attnlab.analysis.measure import Program, Quartiles
from attnlab.bench.measuring import Measured, PeerTiming
from attnlab.bench.peers import Peer
from attnlab.mechanisms import Softmax


def attention(q, k, v, causal):
    """Returns softmax attention of arrays [H T K], computed in plain numpy."""
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v


def peer(package="numpy", wrong=0.0):
    """Returns a peer of softmax attention that needs only numpy. `wrong` is added to its outputs."""

    def prepare(call):
        q, k, v, _ = call.arrays
        run = lambda: attention(q, k, v, call.mask == "causal") + wrong
        return Program(run, run)

    return Peer(package, ("full", "causal"), lambda mechanism: isinstance(mechanism, Softmax), prepare)


def measured(name="softmax", mask="causal", which="forward", lengths=(512, 1024, 2048, 4096), power=2.0, peers=()):
    """Returns cells like those that a bench measures. Their seconds and memory grow as T^power."""
    return [
        Measured(
            name,
            mask,
            which,
            T,
            tuple(1e-9 * T**power * x for x in (0.9, 1.0, 1.1)),
            compile_seconds=1.5,
            memory=int(4 * T**power),
            moved=1024 * T,
            flops=int(256 * T**power),
            peers={p: PeerTiming((1.0, 1.1, 1.2), Quartiles(1.5, 1.4, 1.6), 1e-7, None) for p in peers},
        )
        for T in lengths
    ]
