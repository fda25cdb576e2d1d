"""Induction: which positions still find what followed a token, in sequences longer than those trained on?

Claim: at the length of training all do; at two to four times that length the order is xPos, RoPE, absolute positions,
and a selective recurrence keeps to 100%; much further on all positions fail alike.
Command: attnlab run experiments/induction.py --workers 2
Minutes on two cores: not yet measured.
Expected: accuracy by length ("accuracy.64" to "accuracy.1024"); not yet measured. Published, trained at 256 (Gu and Dao
2023, Mamba, table 11; one seed), at 256, 512 and 1,024: absolute 100, 58.6, 26.6; RoPE 100, 83.6, 31.3; xPos 100, 99.6,
67.6; Mamba 100, 100, 100. Here training is at 64, so that 64, 128 and 256 answer to those. All train for 3,000 steps;
of a schedule of 4,000, absolute and rotary positions had all 256 sequences of validation after 1,000 and 1,500.
"""

from attnlab.lab.study import Experiment, Study
from attnlab.lab.variation import Variation
from attnlab.mechanisms import MECHANISMS
from attnlab.models import Language
from attnlab.modules.position import POSITIONS
from attnlab.tasks.induction import Induction
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Induction(),
        model=Language(width=64, heads=1, layers=2, feedforward=128),
        train=Train(
            steps=3000,
            batch_size=64,
            learning_rate=1e-3,
            warmup=100,
            seeds=3,
            evaluate_every=500,
            save_every=1000,
        ),
    ),
    Variation(
        {
            "absolute": {"model.position": POSITIONS["sinusoidal"]},
            "rotary": {"model.position": POSITIONS["rotary"]},
            "xpos": {"model.position": POSITIONS["xpos"]},
            "alibi": {"model.position": POSITIONS["alibi"]},
            "none": {"model.position": POSITIONS["none"]},
            "ssd": {"model.position": POSITIONS["none"], "model.mechanism": MECHANISMS["ssd"]},
            "gated-delta": {"model.position": POSITIONS["none"], "model.mechanism": MECHANISMS["gated-delta"]},
        }
    ),
    question="Which positions still find what followed a token, in sequences longer than those trained on?",
    quick={"train.steps": 16, "train.warmup": 4, "train.seeds": 2},
)
