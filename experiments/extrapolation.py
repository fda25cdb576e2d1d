"""Extrapolation: which position encodings predict text beyond the training length?

Claim: all models are trained on 64 characters and tested on 256. Sinusoidal and learned positions fail immediately
beyond 64, rotary positions get worse, and ALiBi keeps its loss. A causal model without positions is in between.
Command: attnlab run experiments/extrapolation.py
Minutes on two cores: 40, on one of them while other programs ran.
Expected: nats per character at positions 1-64, 65-128 and 129-256 of a block, mean of 3 seeds: ALiBi 1.97, 1.96 and
1.95; xPos 1.86, 1.91, 2.05; rotary 1.86, 2.01, 2.42; T5 2.12, 2.28, 2.46; none 2.25, 2.42, 2.51; learned 2.10, 2.97,
2.97; sinusoidal 2.00, 3.09, 3.18. Over all positions, ALiBi 1.96 (1.93-1.98), xPos 1.97 (1.90-2.03), rotary 2.18
(2.03-2.33) and T5 2.33 (2.32-2.34) are better than none, 2.42 (2.42-2.43). Learned, 2.75 (2.63-2.88), and sinusoidal,
2.86 (2.77-2.96), are worse. So the claim holds. Over four times the length xPos has the same mean as ALiBi, but it gets
worse with the position where ALiBi does not.

These are of jax 0.12.0.1. With weight decay on biases, norms and embeddings no mean differed by more than .03.

For language models trained on 512 to 3,072 tokens, Press et al. 2022 (quoted from memory) report perplexities that fail
immediately with sinusoidal positions, degrade with rotary ones and stay with ALiBi.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.models import Language
from attnlab.modules.position import T5, ALiBi, Learned, Position, Rotary, Sinusoidal, XPos
from attnlab.tasks.text.text import Shakespeare
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
    question="Which position encodings predict text beyond the training length?",
    quick={"train.steps": 16, "train.warmup": 4, "train.seeds": 1},
)
