"""Seconds per token of attention, recurrent networks and stacked convolutions, in training and in decoding.

Claim: in decoding the time of attention grows with the length that it has room for, and that of the others does not. In
training a recurrent network processes one token after the other. This is slow on hardware that computes much at once;
on two cores it may not be.

Command: python benchmarks/recurrent.py [--save]     (1.5 minutes, AMD EPYC, two cores)

The models are those of `experiments/rnn_vs_attention.py`, with the parameters that it matches, untrained. Training
measures the loss and gradients of 16 sequences of multi-query recall. Decoding measures 32 tokens of 16 sequences one
by one, with room for the given length.

Expected: microseconds per token at each length; the last lines say which part of the claim holds on this machine. At
1,024 tokens, medians of 15: in training attention 30.9, linear attention 14.0, GRU 12.9, LSTM 12.0, dilated
convolutions 9.2, convolutions 6.5; in decoding 161 (149 to 183), 9.6 (8.3 to 13.4), 3.2, 2.9, 5.9, 3.1. In decoding
attention's time grows as T^1.2 from 64 to 1,024, the others' as T^.1 or less. Judged by the ends of 95% intervals, when
the machine was slow (2.1 minutes), the claim holds for attention T^.95 (.81-1.08) and LSTM T^-.08 (-.21-.05). It is
unclear for linear T^-.05 (-.24-.15), GRU .06 (-.13-.25), convolutions .09 (-.02-.21) and dilated ones .10 (-.03-.22),
whose intervals are too wide. A GRU trains in .42 times attention's time: here processing one token after the other is
no disadvantage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from attnlab.analysis.growth import growth
from attnlab.analysis.measure import Program, compiled, quartiles, timed
from attnlab.bench.script import claim_growth, finish, options, say
from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.matching import matched
from attnlab.lab.study.load import load_study
from attnlab.tasks.synthetic.recall import Recall

BATCH, STEPS = 16, 32


def models() -> dict[str, Any]:
    """Return the models of the experiment, matched as in its runs."""
    study = load_study(Path(__file__).parents[1] / "experiments" / "rnn_vs_attention.py")
    return {name: each.model for name, each in matched(study, Ledger()).experiments.items()}


def programs(config: Any, length: int) -> dict[str, Program]:
    """Return a training step and the decoding of some tokens, for a model at the given length."""
    problem = Recall(vocabulary=16, pairs=4, queries=4, length=length, valid_examples=1, test_examples=8).load()
    model = jax.jit(lambda: config.create(jax.random.key(0), problem.shape))()
    loss = lambda model, batch: problem.loss(model, batch, None)[0]

    def write(model, state):
        def step(known, _):
            state, token = known
            scores, state = jax.vmap(model.step)(state, token)
            return (state, jnp.argmax(scores, axis=1).astype(jnp.int32)), None

        (_, token), _ = jax.lax.scan(step, (state, jnp.zeros(BATCH, jnp.int32)), length=STEPS)
        return token

    state = jax.jit(jax.vmap(lambda _: model.start(length)))(jnp.arange(BATCH))
    return {
        "training": compiled(jax.value_and_grad(loss), model, problem.batch(0, 0, BATCH)),
        "decoding": compiled(write, model, state),
    }


def main() -> None:
    """Measure, print the results and check the claim."""
    chosen, configs = options(__doc__, [64, 256, 1024], 15), models()
    cells: dict[str, dict[str, dict[int, list[float]]]] = {name: {"training": {}, "decoding": {}} for name in configs}
    for T in sorted(chosen.lengths):
        made = {f"{name} {kind}": one for name, config in configs.items() for kind, one in programs(config, T).items()}
        say(f"T={T}: {len(made)} programs compiled")
        for title, seconds in timed(made, chosen.repeat).items():
            name, kind = title.rsplit(" ", 1)
            tokens = BATCH * (T if kind == "training" else STEPS)
            cells[name][kind][T] = [x / tokens for x in seconds]
            found = quartiles(cells[name][kind][T])
            low, middle, high = (1e6 * x for x in (found.low, found.median, found.high))
            print(f"T={T:<5} {title:<22} {middle:8.2f} µs per token ({low:.2f} to {high:.2f})")
    longest = max(chosen.lengths)
    cost = lambda name, kind: quartiles(cells[name][kind][longest]).median
    others = [name for name in configs if name != "attention"]
    for name in others:
        ratio = cost(name, "training") / cost("attention", "training")
        print(f"training at {longest}: {name} takes {ratio:.2f} times as long per token as attention")
    growths = {name: growth(found["decoding"]) for name, found in cells.items()}
    claims = [
        claim_growth(f"growth of {name}'s cost per token in decoding", growths[name], most=0.1) for name in others
    ]
    claims.append(claim_growth("growth of attention's cost per token in decoding", growths["attention"], least=0.3))
    finish(__file__, chosen.save, claims, seconds_a_token=cells)


if __name__ == "__main__":
    main()
