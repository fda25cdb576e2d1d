"""What is asked: studies, how their variants differ, overrides, reading and writing experiment files. No jax."""

from attnlab.lab.study.study import Experiment, Study, change
from attnlab.lab.study.variation import Variation, chain, over, product, zipped

__all__ = ["Experiment", "Study", "Variation", "chain", "change", "over", "product", "zipped"]
