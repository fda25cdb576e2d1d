"""SAGAN: does attention help a generator and a discriminator of small images, and does linear attention help as much?

Claim: none at this size; the study asks. At 128 × 128 pixels, attention at 32 × 32 positions reduced the FID on
ImageNet from 22.96 to 18.28 (Zhang et al. 2019, table 1, quoted from memory). Here there are 14 × 14 positions, few
enough for convolutions to reach across, so little improvement is to be expected.
Command: ATTNLAB_DATA=... attnlab run experiments/sagan.py
Minutes on two cores: 36 with `--workers 2`, in two parts, while other programs ran, with jax's compilation cache (AMD
EPYC).
Expected: the Fréchet distance of 5,000 images to the test images, in the features of our own classifier (this is no
FID, which uses Inception's features), 3 seeds: softmax 5.54 (4.24-6.84), none 6.25 (2.56-9.94; seeds 5.3, 5.4 and 8.0),
linear 6.30 (5.15-7.45). Neither differs significantly from softmax; that would take 6 seeds for linear and 36 for none.
Every result also has the floor, which is the distance of 5,000 real images, 0.06, and the distance of noise, 72. All
distances were still falling: on validation they were 9.1 to 9.6 after 1,500 steps and 6.4 to 6.9 after 2,000
(validation has 512 images, so its distances are larger). All variants spread over the classes as the test images do
(diversity .95-.99). Softmax took 1.8 times as long as none, linear 1.5 times. The learning rates are 1e-3 and, for the
generator, 2.5e-4. The published rates were 4e-4 and 1e-4, for networks many times wider.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.mechanisms import Linear
from attnlab.models.sagan import SAGAN
from attnlab.tasks.vision.generation import Generation
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Generation(),
        model=SAGAN(width=16),
        train=Train(
            steps=2000,
            batch_size=64,
            learning_rate=1e-3,
            schedule="constant",
            warmup=0,
            beta1=0.0,
            beta2=0.9,
            clip=0.0,
            seeds=3,
            evaluate_every=500,
            save_every=500,
        ),
    ),
    over("model.mechanism", softmax=SAGAN().mechanism, linear=Linear(), none=None),
    question="Does attention help a generator and a discriminator of small images, and does linear attention too?",
    quick={
        "train.steps": 8, "train.batch_size": 16, "train.seeds": 2, "task.samples": 64, "task.classifier_steps": 32,
    },
)  # fmt: skip
