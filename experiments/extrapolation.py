"""Extrapolation: which position still foretells text beyond the length it was trained on?

Claim: trained on 64 characters and read to 256, sinusoidal and learned positions break at once beyond 64, rotary ones
get worse, and ALiBi holds; no position at all, in a causal model, is in between.
Command: attnlab run experiments/extrapolation.py
Minutes on two cores: not yet measured.
Expected: nats a character at places 1-64, 65-128 and 129-256 of a block; not yet measured.

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
