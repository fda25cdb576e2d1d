"""The padding mask: is linear attention bad at ListOps, or did it score low because it read the padding?

Claim: none of our own. The Long Range Arena (Tay et al. 2021) prints 36.37% on ListOps for softmax and 16.13% for
linear attention, whose released code ignores the padding mask. It is open which of the two explains 16.13.
Command: attnlab run experiments/listops_mask.py --workers 2
         attnlab run experiments/listops_mask.py task.shortest=501 task.longest=1999 --out long      (its lengths)
Minutes on two cores: 35, while other programs ran, with jax's compilation cache (2.8 GHz Xeon).
Expected: accuracy with the mask honoured and ignored, 3 seeds: softmax 44.0% [42.7, 45.3] and 43.4% [43.1, 43.6],
linear 42.3% [39.8, 44.8] and 40.5% [38.9, 42.1]. With these seeds no difference is significant. Reference values for
such expressions: the most frequent digit as the only answer is right in 15 to 16%; the most frequent digit for each
outermost operator, which is the first word, is right in 33%. So 16.13 is the score of a model that has learned nothing,
and at this length reading the padding does not explain it.

The lists are short: 16 to 128 words, padded to 128. Two thirds of all positions are padding (in the arena, with 500 to
2,000, about half). "Ignored" means that attention reads the padding as one more symbol, in training and in the test.
The answer is read from a token of its own, as in the arena, so that the mask matters in attention alone and not in a
mean.
"""

from attnlab.lab.study import Experiment, Study, over, product
from attnlab.mechanisms import Linear, Softmax
from attnlab.models.classifier import Classifier
from attnlab.tasks.synthetic.listops import ListOps
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=ListOps(),
        model=Classifier(width=64, heads=4, layers=2, feedforward=128, pool="token"),
        train=Train(steps=2000, batch_size=32, learning_rate=1e-3, warmup=200, seeds=3, save_every=1000),
    ),
    product(
        over("model.mechanism", softmax=Softmax(), linear=Linear()),
        over("task.honoured", honoured=True, ignored=False),
    ),
    question="Is linear attention bad at ListOps, or did it score low because it read the padding?",
    margin=0.02,
    against={"linear-ignored": "linear-honoured"},
    quick={"train.steps": 16, "train.warmup": 4, "train.seeds": 2, "task.longest": 32, "task.test_examples": 200},
)
