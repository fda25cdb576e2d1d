"""Around the mechanism: does the output gate or the norm of the heads matter, for softmax and for gated-delta?

Claim: published linear layers have both, and softmax layers since 2025 a gate (Qiu et al. 2025: a sigmoid gate lowers
the loss of softmax). It is asked what each of the two brings by itself, at equal parameters.
Command: ATTNLAB_DATA=... attnlab run experiments/gates.py
         attnlab run experiments/gates.py task=recall --out runs/recall
Minutes on two cores: not measured yet.
Expected: not measured yet.

Characters of Shakespeare. Softmax has a sigmoid gate and gated-delta a
SiLU gate, per channel, as published. The norm is an RMS norm of each head. All are matched to plain softmax in their
parameters. Differences below .02 nats count as equal.
"""

from dataclasses import replace

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.mechanisms import MECHANISMS
from attnlab.models import Language
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.position import POSITIONS
from attnlab.tasks.text.text import Shakespeare
from attnlab.training.config import Train

PLAIN = {
    "softmax": MultiHead(gate_activation="sigmoid"),
    "gated-delta": MultiHead(gate_activation="silu"),
}
AROUND = {
    "plain": {},
    "gate": {"gate": "channel"},
    "norm": {"head_norm": "rms"},
    "gate-norm": {"gate": "channel", "head_norm": "rms"},
}

study = Study(
    Experiment(
        task=Shakespeare(length=64),
        model=Language(width=64, heads=4, layers=2, feedforward=256),
        train=Train(
            steps=700,
            batch_size=32,
            learning_rate=(1e-3, 3e-3),
            warmup=100,
            seeds=3,
            evaluate_every=175,
            save_every=350,
        ),
    ),
    Variation(
        {
            f"{name}-{part}": {
                "model.mechanism": MECHANISMS[name],
                "model.position": POSITIONS["rotary" if name == "softmax" else "none"],
                "model.attention": replace(layer, **fields),
            }
            for name, layer in PLAIN.items()
            for part, fields in AROUND.items()
        }
    ),
    against={f"{name}-{part}": f"{name}-plain" for name in PLAIN for part in AROUND if part != "plain"},
    question="Does the output gate or the norm of the heads matter, for softmax and for gated-delta?",
    match="parameters",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
