"""A training step of the Transformer encoder-decoder, compared with `torch.nn.Transformer`.

Claim: at least 1.5 times faster than torch's eager mode and 1.2 times faster than compiled torch, at all sizes. `base`
has 3 + 3 layers of width 256, 8 heads, and batches of 64 pairs of 32 symbols; `tiny` 2 + 2 layers of width 64, 4 heads,
and 64 pairs of 24. The vocabulary of both has 8,000 symbols per side. `long` has 2 + 2 layers of width 128, 4 heads, 8
pairs of 256, and 100 symbols; `wide` 2 + 2 layers of width 512, 8 heads, 16 pairs of 64, and 100 symbols. The hidden
layers of the feed-forward blocks are four times as wide.

Command: python benchmarks/transformer.py [--sizes NAME …] [--save]     (needs the `peers` extra)

One step is the cross-entropy of shifted targets, gradients and Adam; float32, dropout .1, norms first, embeddings and
scores separate, no padding. Ours is the step that `attnlab run` makes, including dropout's keys and the check for
numbers that are not finite, 8 steps per dispatch. Torch's is written as its documentation has it. `--repeat` turns of 8
steps each.

Expected: kept for compiled torch, and for eager torch at the long size; missed for it at the others. On two quiet cores
of an Intel Xeon cloud machine, jax 0.10.2, torch 2.13, `--repeat 5`, ms per step, and how many times as long torch
takes (quartiles):

| size | ours | torch | compiled torch | torch, times | compiled torch, times |
|---|---|---|---|---|---|
| tiny | 102 (102-104) | 152 (152-153) | 184 (183-186) | 1.49 (1.46-1.51) | 1.79 (1.76-1.79) |
| base | 704 (679-706) | 792 (771-834) | 890 (852-905) | 1.18 (1.12-1.18) | 1.28 (1.25-1.35) |
| long | 215 (212-215) | 332 (327-335) | 412 (407-414) | 1.54 (1.54-1.55) | 1.92 (1.91-1.95) |
| wide | 628 (627-629) | 681 (678-696) | 817 (785-821) | 1.09 (1.08-1.11) | 1.27 (1.25-1.31) |

What bounds it, from the profiler: at the base size, of a step of 1,052 ms on two cores of an EPYC machine, products
take an estimated 660, near the 140 GFLOP/s that either library reaches there in products of 2,048 × 256 × 256; the rest
are passes over activations. At the tiny size, while other programs ran, 46% of the step went to the vocabulary's 1,536
× 8,000 scores, 18% to the three products with them.

Optimisations that helped: layers stored and not computed again (9 to 13%), unrolled (6% at the tiny size; at the larger
nothing, 7% with jax 0.12), no argmax of the scores for a training metric (17% at the tiny size), scores by blocks (16%
at the tiny size, 6% at the larger, by the ratios above). Optimisations that did not help: one product for queries, keys
and values changes the time by less than the runs differ; a single lane without its batch axis gains nothing; products
whose gradients transpose their factors beforehand, so that no product has to, gain nothing either: attention took
between 31% less and 18% more of the time in four shapes.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from attnlab.analysis.measure import Program, quartiles, timed, times_faster
from attnlab.bench.script import claim, finish, options, say, share
from attnlab.bench.steps import dispatch
from attnlab.models import Transformer
from attnlab.tasks.base.shapes import Pairs
from attnlab.tasks.text.transduction import PairData
from attnlab.training.config import Train
from attnlab.training.shapes import Steps
from attnlab.training.trainer import DISPATCH, Trainer

RATE, DROPOUT = 1e-3, 0.1


@dataclass(frozen=True)
class Size:
    """The size of a network and of its batches."""

    layers: int
    width: int
    heads: int
    batch: int
    length: int
    symbols: int

    @property
    def feedforward(self) -> int:
        """Width of the hidden layers of the feed-forward blocks."""
        return 4 * self.width


SIZES = {
    "base": Size(3, 256, 8, 64, 32, 8000),
    "tiny": Size(2, 64, 4, 64, 24, 8000),
    "long": Size(2, 128, 4, 8, 256, 100),
    "wide": Size(2, 512, 8, 16, 64, 100),
}


class Noise(PairData):
    """Sequences of random symbols, all of one length: the loss of every transduction, and no data."""

    def __init__(self, size: Size):
        self.shape = Pairs(size.symbols, size.symbols, size.length, size.length)
        self.smoothing = 0.0


def symbols(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Sources and targets, [8 B T] each."""
    draw = np.random.default_rng(0).integers
    one, other = (draw(3, size.symbols, (DISPATCH, size.batch, size.length), dtype=np.int32) for _ in range(2))
    return one, other


def ours(size: Size) -> Program:
    """Eight steps of one lane."""
    config = Transformer(
        width=size.width, heads=size.heads, layers=size.layers, feedforward=size.feedforward, dropout=DROPOUT
    )
    problem = Noise(size)
    train = Train(
        steps=10**6, batch_size=size.batch, learning_rate=RATE, schedule="constant", warmup=0, clip=0.0, seeds=1
    )  # fmt: skip
    trainer = Trainer(lambda key: config.create(key, problem.shape), problem, train)
    source, target = symbols(size)
    shapes = {"source": source.shape[1:], "target": target.shape[1:]}
    batches = Steps(
        {"source": source[:, None], "target": target[:, None]}, np.zeros(DISPATCH, np.int32), (shapes,)
    )  # fmt: skip
    return dispatch(trainer, batches)


def torchs(size: Size, compiled: bool) -> Program:
    """The same in torch."""
    torch: Any = import_module("torch")
    nn = torch.nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.source, self.target = (nn.Embedding(size.symbols, size.width) for _ in range(2))
            self.places = nn.Parameter(torch.randn(size.length, size.width) * 0.02, requires_grad=False)
            self.body = nn.Transformer(
                size.width, size.heads, size.layers, size.layers, size.feedforward, DROPOUT,
                batch_first=True, norm_first=True,
            )  # fmt: skip
            self.output = nn.Linear(size.width, size.symbols)
            self.drop = nn.Dropout(DROPOUT)

        def forward(self, source, given, mask):
            scale = size.width**0.5
            one, other = (
                self.drop(embed(x) * scale + self.places) for embed, x in ((self.source, source), (self.target, given))
            )
            return self.output(self.body(one, other, tgt_mask=mask, tgt_is_causal=True))

    network = Network().train()
    adam = torch.optim.Adam(network.parameters(), RATE)
    mask = nn.Transformer.generate_square_subsequent_mask(size.length)
    source, target = (torch.from_numpy(x.astype(np.int64)) for x in symbols(size))
    call = torch.compile(network) if compiled else network

    def run():
        for n in range(DISPATCH):
            given = torch.cat([torch.ones(size.batch, 1, dtype=torch.int64), target[n, :, :-1]], 1)
            scores = call(source[n], given, mask)
            loss = nn.functional.cross_entropy(scores.reshape(-1, size.symbols), target[n].reshape(-1))
            adam.zero_grad()
            loss.backward()
            adam.step()
        return loss.item()

    return Program(run, run)


def main() -> None:
    """Measure, print the results and check the claim."""
    chosen = options(__doc__, [], 7, sizes=list(SIZES))
    results, claims = {}, []
    for name in chosen.sizes:
        size = SIZES[name]
        peers = {"torch": torchs(size, False), "compiled torch": torchs(size, True)}
        programs = {"ours": ours(size)} | peers
        seconds = timed(programs, chosen.repeat)
        for each, values in seconds.items():
            found = quartiles(values)
            low, middle, high = (1000 * x / DISPATCH for x in (found.low, found.median, found.high))
            say(f"{name}, {each}: {middle:.1f} ms per step ({low:.1f} to {high:.1f})")
        losses = {each: float(np.mean(program.answer())) for each, program in programs.items()}
        say(f"{name}: loss after the same steps: " + ", ".join(f"{each} {loss:.2f}" for each, loss in losses.items()))
        ratios = {peer: times_faster(seconds["ours"], seconds[peer]) for peer in peers}
        for (peer, ratio), least in zip(ratios.items(), (1.5, 1.2), strict=True):
            reached = share(programs["ours"], seconds["ours"])
            claims.append(claim(f"{name}, time of {peer} / time of ours", [ratio], least=least, shares=[reached]))
        results[name] = {"size": vars(size), "seconds": seconds, "ratios": {n: vars(x) for n, x in ratios.items()}}
    finish(__file__, chosen.save, claims, torch=import_module("torch").__version__, measured=results)


if __name__ == "__main__":
    main()
