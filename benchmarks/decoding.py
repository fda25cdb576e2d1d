"""Seconds to decode a batch greedily, from cached states and by recomputing everything; and the cost per symbol.

Claim: decoding from cached states is at least ten times faster than recomputing, for sentences as long as Multi30k's. A
symbol costs linear attention the same after 64 symbols and after 4,096, and its state does not grow. Softmax's cache
grows by 2·K numbers per symbol, layer and head.

Command: ATTNLAB_DATA=... python benchmarks/decoding.py [--save]     (four minutes; with `--repeat 3`, two)

The model is a Transformer of 3 + 3 layers of width 256 with 8 heads. It is untrained, because the time of an answer
does not depend on its content. The sources are the first 64 of Multi30k's test2016, English, in a joint BPE of 10,000;
if they are not available, random ones of 32 symbols. Answers have up to 44 symbols, which test2016 needs. Recomputing
runs the whole decoder over all 44 symbols for each symbol, and the encoder once.

Expected: the last lines say which part of the claim holds on this machine. All of it held on two cores of an EPYC cloud
machine, jax 0.10.2, with `--repeat 3`, without other load. Recomputing takes 10.6 times as long as cached states (8.68
s and .81; the median of turns), and both give the same answers. A symbol costs linear attention 519 to 615 µs with room
for 64 to 4,096 symbols (as T^-.03, -.15 to .09) and softmax 571 to 2,045 µs. Softmax's cache grows by 6.3 kB per
symbol. Earlier measurements, 8.4 to 17 times, are not comparable: the recomputed decoder lacked the last layer, and the
states of all layers were one array that every symbol copied.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.analysis.growth import growth
from attnlab.analysis.measure import Program, compiled, quartiles, timed, times_faster
from attnlab.bench.script import claim, claim_growth, finish, options, say
from attnlab.console.format import duration
from attnlab.data.io.files import DataError
from attnlab.data.text.units import Bpe
from attnlab.data.text.vocabulary import BEGIN
from attnlab.decoding import greedy
from attnlab.mechanisms import MECHANISMS
from attnlab.models import Transformer
from attnlab.modules.block import Context
from attnlab.tasks.base.shapes import Pairs
from attnlab.tasks.text.translation import Multi30k

BATCH, SOURCE, ANSWER = 64, 32, 44
SYMBOLS, NEVER = 10_000, 10_001  # no model writes this end: all answers have full length
CONFIG = Transformer(width=256, heads=8, layers=3, feedforward=1024)
STEPS = 32  # symbols timed at each length


def network(name: str, length: int):
    """Return an untrained model with room for the given number of symbols."""
    config = replace(CONFIG, mechanism=MECHANISMS["softmax"], decoder=MECHANISMS[name])
    return jax.jit(lambda: config.create(jax.random.key(0), Pairs(SYMBOLS, SYMBOLS, sources(BATCH).shape[1], length)))()


@cache
def sources(batch: int) -> np.ndarray:
    """Return the first sources [B S] of test2016, or random symbols if it is not available."""
    try:
        problem = Multi30k(source="en", target="de", units=Bpe(size=SYMBOLS)).load()
    except DataError as error:
        say(f"random sources: {error}")
        return np.random.default_rng(0).integers(3, SYMBOLS, (batch, SOURCE), dtype=np.int32)
    return problem.eval_batches("test", batch)[0]["source"]


def cached(name: str) -> Program:
    """Decode every symbol from the state."""

    def answer(model, source):
        one = lambda source: greedy(model.step, model.start(source, source > 0, ANSWER), BEGIN, NEVER, ANSWER)
        return jax.vmap(one)(source)

    return compiled(answer, network(name, ANSWER), sources(BATCH))


def recomputed(name: str) -> Program:
    """Decode every symbol from all symbols before it, with the whole decoder."""

    def answer(model, source):
        def one(source):
            keep = source > 0
            context = Context(model.encode(source, keep)[0], keep)

            def append(given, t):
                x, _ = model.teacher_forced(given, jnp.arange(ANSWER) <= t, context, (None, None))
                # As in greedy decoding, neither padding nor the start symbol is ever written.
                scores = model.score(x[t][None])[0].at[jnp.array([0, BEGIN])].set(-jnp.inf)
                token = jnp.argmax(scores).astype(jnp.int32)
                return given.at[t + 1].set(token, mode="drop"), token

            first = jnp.zeros(ANSWER, jnp.int32).at[0].set(BEGIN)
            return jax.lax.scan(append, first, jnp.arange(ANSWER))[1]

        return jax.vmap(one)(source)

    return compiled(answer, network(name, ANSWER), sources(BATCH))


def far(name: str, length: int) -> tuple[Program, int]:
    """Decode some symbols of 8 answers with room for that length; also count the bytes of one example's state.

    Shapes are static: each symbol costs what the last one would.
    """
    model = network(name, length)

    def write(model, state):
        def step(known, _):
            state, token = known
            scores, state = jax.vmap(model.step)(state, token)
            return (state, jnp.argmax(scores, axis=1).astype(jnp.int32)), None

        (_, token), _ = jax.lax.scan(step, (state, jnp.full(8, 3, jnp.int32)), length=STEPS)
        return token

    begin = lambda source: model.start(source, source > 0, length)
    state = jax.jit(jax.vmap(begin))(sources(8))
    layers = sum(leaf.nbytes for leaf in jax.tree.leaves(state.layers)) // 8
    return compiled(write, model, state), layers


def main() -> None:
    """Measure, print the results and check the claim."""
    chosen = options(__doc__, [64, 256, 1024, 4096], 5)
    programs = {"softmax, cached": cached("softmax"), "softmax, recomputed": recomputed("softmax"),
                "linear, state": cached("linear")}  # fmt: skip
    one, other = (programs[name].answer() for name in ("softmax, cached", "softmax, recomputed"))
    seconds = timed(programs, chosen.repeat)
    for name, values in seconds.items():
        found = quartiles(values)
        low, high = duration(found.low), duration(found.high)
        print(f"{name:<20} {duration(found.median):>8} ({low} to {high}) for {BATCH} answers of {ANSWER} symbols")

    cells: dict[str, dict[int, list[float]]] = {}
    states: dict[str, dict[int, int]] = {}
    for name in ("softmax", "linear"):
        made = {length: far(name, length) for length in chosen.lengths}
        turns = timed({str(length): program for length, (program, _) in made.items()}, chosen.repeat)
        cells[name] = {length: [x / STEPS for x in turns[str(length)]] for length in made}
        states[name] = {length: size for length, (_, size) in made.items()}
        for length, values in cells[name].items():
            cost = f"{1e6 * quartiles(values).median / 8:.0f} µs"
            print(f"{name}, length {length:>5}: {cost:>8} per symbol; state {states[name][length] / 1e3:,.0f} kB")

    ratio = times_faster(seconds["softmax, cached"], seconds["softmax, recomputed"])
    claims = [
        claim("share of symbols that both answer", [float((one == other).mean())], least=0.99),
        claim("recomputing against cached", [ratio], least=10),
        claim_growth("growth of linear's cost per symbol", growth(cells["linear"]), most=0.1),
    ]
    sizes = states["softmax"]
    if len(sizes) > 1:
        (short, a), (long, b) = min(sizes.items()), max(sizes.items())
        print(f"softmax's cache grows by {(b - a) / (long - short) / 1e3:.2f} kB per symbol")
    finish(__file__, chosen.save, claims, seconds=seconds, by_length=cells, state_bytes=states)


if __name__ == "__main__":
    main()
