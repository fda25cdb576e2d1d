"""A training step of a language model, compared with the same network in torch, eager and compiled.

Claim: at least 1.5 times faster than torch's eager mode and 1.2 times faster than compiled torch, at all sizes.

Command: python benchmarks/language.py [--mechanisms softmax linear gated-delta] [--save]     (needs the `peers` extra)

The network is that of nanoGPT: 4 layers, 4 heads, GELU, learned positions, embeddings shared with the output, no
biases, no dropout. `tiny` has width 64, and 32 sequences of 24 symbols. `small` is nanoGPT's recipe for a CPU: width
128, 12 sequences of 64. `wide` has width 256, and 8 sequences of 256; `long` width 128, and 4 of 512; `words` width
512, and 8 of 128. There are 100 symbols, and 8,000 in `words`. One step is the loss, the gradients, their norm clipped
at 1, and AdamW; float32. Ours is the step that `attnlab run` makes, 8 steps per dispatch. Torch's is written as its
documentation has it, with `scaled_dot_product_attention`. `--repeat` turns of 8 steps each alternate.

Expected: missed. On two quiet cores of an Intel Xeon cloud machine, jax 0.10.2, torch 2.13, `--repeat 5`, in ms per
step (quartiles):

| | tiny | small | wide | long | words |
|---|---|---|---|---|---|
| products alone | 7.1 (6.8-7.1) | 20.1 (19.7-20.5) | 160 (158-163) | 45.6 (43.8-46.7) | 282 (277-288) |
| softmax | 21.7 (21.5-22.5) | 49.4 (49.4-49.8) | 318 (316-322) | 174 (172-177) | 580 (578-590) |
| linear | 23.6 (23.0-23.7) | 54.5 (51.7-55.0) | 351 (349-353) | 154 (153-163) | 662 (657-673) |
| gated-delta | 53.1 (52.6-55.0) | 87.0 (86.4-87.6) | 507 (505-522) | 286 (285-287) | 830 (787-836) |
| torch | 21.7 (18.2-22.4) | 38.5 (36.5-40.1) | 233 (231-245) | 117 (116-120) | 478 (465-482) |
| compiled torch | 16.0 (15.6-16.3) | 35.4 (34.7-35.7) | 231 (231-235) | 112 (111-113) | 473 (460-490) |

Torch takes .92, .78, .73, .66 and .82 times as long as softmax, and .94, .71, .67, .76 and .71 times as long as linear;
compiled torch .74, .71, .73, .63 and .81 times as long as softmax. How far behind depends on the processor and on the
compiler: on two cores of an EPYC cloud machine, `--repeat 7`, 65 symbols, torch took .97, .89 and .88 times as long as
softmax at the small, the wide and the long size. With jax 0.11.2 the same step of softmax takes 16.6, 39.0, 286.7 ms at
the first three sizes on the Xeon (`language_jax.py`), and 614.5 ms with words.

What bounds it: the products of the linear maps. "Products alone" are these products, forward and backward, at about
180, 240 and 210 GFLOP/s at the small, the wide and the long size. At the wide size 1.5 times faster than torch would be
155 ms, less than these products take. Beyond the products ours takes 158 ms at the wide size, torch 73. A profile of
this step on the EPYC, before rows of causal softmax were computed in parts: linear maps 183 ms, products of attention
79, softmax 39, other elementwise passes 27, sums over features 23, copies 3. The products of attention have 64 numbers
to sum, and reach 80 GFLOP/s; torch has one kernel for attention, which skips what the mask excludes. A profile of the
long step on the Xeon: all products 100 ms, sums 25, copies of the masked gradients of scores 22, other selections 15,
exponentials 7.
"""

from importlib import import_module
from typing import Any

import jax
import numpy as np
from shared.language_steps import BETAS, CLIP, DECAY, RATE, SIZES, Size, language_steps, random_symbols

from attnlab.analysis.measure import Program, quartiles, timed, times_faster
from attnlab.bench.script import claim, finish, options, say, share
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
                reached = share(programs[mechanism], seconds[mechanism])
                claims.append(
                    claim(f"{name}, time of {peer} / time of {mechanism}", [ratio], least=least, shares=[reached])
                )
                ratios[f"{peer}/{mechanism}"] = vars(ratio)
        results[name] = {"size": vars(size), "seconds": seconds, "ratios": ratios}
    finish(__file__, chosen.save, claims, torch=import_module("torch").__version__, measured=results)


if __name__ == "__main__":
    main()
