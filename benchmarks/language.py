"""A training step of a language model, compared with the same network in torch, eager and compiled.

Claim: at least 1.5 times faster than torch's eager mode and 1.2 times faster than compiled torch, at all sizes.

Command: python benchmarks/language.py [--mechanisms softmax linear gated-delta] [--save]     (needs the `peers` extra)

The network is that of nanoGPT: 4 layers, 4 heads, GELU, learned positions, embeddings shared with the output, no
biases, no dropout. `tiny` has width 64, and 32 sequences of 24 symbols. `small` is nanoGPT's recipe for a CPU: width
128, 12 sequences of 64. `wide` has width 256, and 8 sequences of 256; `long` width 128, and 4 of 512; `words` width
512, and 8 of 128. There are 100 symbols, and 8,000 in `words`. One step is the loss, the gradients, their norm clipped
at 1, and AdamW; float32. Ours is the step that `attnlab run` makes, 8 steps per dispatch. Torch's is written as its
documentation has it, with `scaled_dot_product_attention`. `--repeat` turns of 8 steps each alternate.

Expected: missed. On two cores of an EPYC cloud machine, jax 0.10.2, torch 2.13, `--repeat 7`, 65 symbols, in ms per
step (quartiles):

| | small | wide | long |
|---|---|---|---|
| products alone | 24.0 (23.4 to 24.4) | 217.0 (216.3 to 222.9) | 59.8 (58.5 to 60.3) |
| softmax | 38.6 (38.2 to 39.4) | 351.2 (333.5 to 357.9) | 157.0 (155.4 to 160.9) |
| linear | 43.3 (42.1 to 44.5) | 353.7 (343.5 to 384.7) | 128.2 (125.6 to 133.9) |
| gated-delta | 74.1 (71.8 to 74.4) | 498.1 (484.0 to 521.2) | 243.7 (241.3 to 245.9) |
| torch | 38.3 (36.7 to 39.1) | 303.1 (299.1 to 317.3) | 139.5 (138.0 to 141.7) |
| compiled torch | 34.8 (34.0 to 35.8) | 306.2 (291.5 to 312.8) | 136.1 (135.2 to 137.0) |

Torch takes .97, .89 and .88 times as long as softmax, and 1.07 times as long as linear at 512 symbols. The products of
the linear maps limit the step. "Products alone" are these products, forward and backward, at 151, 178 and 162 GFLOP/s.
At the wide size 1.5 times faster than torch would be 202 ms, less than these products take; at 200 GFLOP/s, which the
best single ones reach, they would take 193. A profile of the wide step, before rows of causal softmax were computed in
parts: linear maps 183 ms, products of attention 79, softmax 39, other elementwise passes 27, sums over features 23,
copies 3.
"""

from importlib import import_module
from typing import Any

import jax
import numpy as np
from shared.language_steps import BETAS, CLIP, DECAY, RATE, SIZES, Size, language_steps, random_symbols

from attnlab.analysis.measure import Program, quartiles, timed, times_faster
from attnlab.bench.script import claim, finish, options, say
from attnlab.mechanisms import MECHANISMS
from attnlab.models import Language
from attnlab.modules.position import Learned
from attnlab.training.trainer import DISPATCH


def ours(size: Size, mechanism: str) -> Program:
    """Eight steps of one lane."""
    config = Language(
        width=size.width, heads=size.heads, layers=size.layers, feedforward=4 * size.width,
        mechanism=MECHANISMS[mechanism], position=Learned(length=size.length), activation="gelu", tied=True,
        biases=False,
    )  # fmt: skip
    return language_steps(config, size)


def products(size: Size) -> Program:
    """The matrix products of the layers' linear maps alone, forward and backward, as jax computes them."""
    rows, D = size.batch * size.length, size.width
    random = np.random.default_rng(0)
    draw = lambda *shape: jax.numpy.asarray(random.normal(size=shape), jax.numpy.float32)
    maps = [(draw(rows, x), draw(x, y), draw(rows, y)) for x, y in ((D, 3 * D), (D, D), (D, 4 * D), (4 * D, D))]

    @jax.jit
    def layer(maps):
        return [(x @ w, y @ w.T, x.T @ y) for x, w, y in maps]

    def run():
        for _ in range(size.layers * DISPATCH):
            found = jax.block_until_ready(layer(maps))
        return found

    return Program(run, run)


def torchs(size: Size, compiled: bool) -> Program:
    """The same in torch."""
    torch: Any = import_module("torch")
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            linear = lambda one, other: nn.Linear(one, other, bias=False)
            self.before, self.between = (nn.LayerNorm(size.width, bias=False) for _ in range(2))
            self.heads, self.mix = linear(size.width, 3 * size.width), linear(size.width, size.width)
            self.wide, self.narrow = linear(size.width, 4 * size.width), linear(4 * size.width, size.width)

        def forward(self, x):
            B, T, D = x.shape
            q, k, v = (y.view(B, T, size.heads, -1).transpose(1, 2) for y in self.heads(self.before(x)).split(D, dim=2))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.mix(mixed.transpose(1, 2).reshape(B, T, D))
            return x + self.narrow(functional.gelu(self.wide(self.between(x))))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.places = nn.Embedding(size.symbols, size.width), nn.Embedding(size.length, size.width)
            self.blocks = nn.ModuleList(Block() for _ in range(size.layers))
            self.last = nn.LayerNorm(size.width, bias=False)
            for table in (self.embedding, self.places):
                nn.init.normal_(table.weight, std=0.02)

        def forward(self, tokens, answers):
            x = self.embedding(tokens) + self.places.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            scores = self.last(x) @ self.embedding.weight.T
            return functional.cross_entropy(scores.view(-1, size.symbols), answers.reshape(-1))

    network = Network().train()
    matrices = [x for x in network.parameters() if x.dim() > 1]
    vectors = [x for x in network.parameters() if x.dim() < 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, RATE, BETAS)
    loss_of = torch.compile(network) if compiled else network
    drawn = torch.from_numpy(random_symbols(size).astype(np.int64))

    def run():
        for n in range(DISPATCH):
            loss = loss_of(drawn[n, :, :-1].contiguous(), drawn[n, :, 1:].contiguous())
            adam.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            adam.step()
        return loss.item()

    run()
    return Program(run, run)


def main() -> None:
    """Measure, print the results and check the claim."""
    chosen = options(__doc__, [], 9, ["softmax", "linear", "gated-delta"], list(SIZES))
    results, claims = {}, []
    for name in chosen.sizes:
        size = SIZES[name]
        programs = {mechanism: ours(size, mechanism) for mechanism in chosen.mechanisms}
        peers = {"torch": torchs(size, False), "compiled torch": torchs(size, True)}
        seconds = timed({"products alone": products(size)} | programs | peers, chosen.repeat)
        for each, values in seconds.items():
            found = quartiles(values)
            low, middle, high = (1000 * x / DISPATCH for x in (found.low, found.median, found.high))
            say(f"{name}, {each}: {middle:.1f} ms per step ({low:.1f} to {high:.1f})")
        ratios = {}
        for peer, least in zip(peers, (1.5, 1.2), strict=True):
            for mechanism in programs:
                ratio = times_faster(seconds[mechanism], seconds[peer])
                words = f"{name}, {peer} takes {ratio.median:.2f} times as long as {mechanism}"
                claims.append(claim(f"{words} ({ratio.low:.2f} to {ratio.high:.2f})", [ratio], least=least))
                ratios[f"{peer}/{mechanism}"] = vars(ratio)
        results[name] = {"size": vars(size), "seconds": seconds, "ratios": ratios}
    finish(__file__, chosen.save, claims, torch=import_module("torch").__version__, measured=results)


if __name__ == "__main__":
    main()
