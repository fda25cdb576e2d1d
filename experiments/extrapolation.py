"""Extrapolation: which position still foretells text beyond the length it was trained on?

Claim: trained on 64 characters and read to 256, sinusoidal and learned positions break at once beyond 64, rotary ones
get worse, and ALiBi holds; no position at all, in a causal model, is in between.
Command: attnlab run experiments/extrapolation.py
Minutes on two cores: 22 with `--workers 2`, beside other work, with jax's compilation cache (AMD EPYC).
Expected: nats a character at places 1-64, 65-128 and 129-256 of a block, mean of 3 seeds: ALiBi 2.03, 2.01 and 2.01
(1.98-2.03); xPos 1.92, 1.96, 2.08 (1.95-2.21); rotary 1.92, 2.06, 2.41 (2.24-2.57); T5 2.16, 2.32, 2.50; none 2.29,
2.44, 2.52; learned 2.13, 2.94, 2.95; sinusoidal 2.04, 3.09, 3.20 (3.06-3.34). Over all, ALiBi and xPos 2.01: better
than none, as are rotary and T5; learned and sinusoidal are worse. So the claim holds; xPos has
ALiBi's mean over four times the length, and gets worse where ALiBi does not.

In the perplexity of language models trained on 512 to 3,072 tokens sinusoidal positions break at once, rotary ones
degrade and ALiBi holds (Press et al. 2022).
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.models import Language
from attnlab.modules.position import T5, ALiBi, Learned, Position, Rotary, Sinusoidal, XPos
from attnlab.tasks.text import Shakespeare
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Shakespeare(length=64, longest=256),
        model=Language(width=128, heads=4, layers=4, feedforward=512, activation="gelu", tied=True, biases=False),
        train=Train(
            steps=1000,
            batch_size=12,
            learning_rate=1e-3,
            warmup=100,
            weight_decay=0.1,
            beta2=0.99,
            seeds=3,
            evaluate_every=500,
            save_every=500,
        ),
    ),
    over(
        "model.position",
        none=Position(),
        sinusoidal=Sinusoidal(),
        learned=Learned(length=256),
        rotary=Rotary(),
        xpos=XPos(),
        t5=T5(),
        alibi=ALiBi(),
    ),
    question="Which position still foretells text beyond the length it was trained on?",
    quick={"train.steps": 16, "train.warmup": 4, "train.seeds": 1},
)
