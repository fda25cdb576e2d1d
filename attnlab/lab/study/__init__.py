"""Experiments and studies: variations, overrides, and reading and writing of experiments. Imports no jax."""

from attnlab.lab.study.study import Experiment, Study, change
from attnlab.lab.study.variation import Variation, chain, over, product, zipped

__all__ = ["Experiment", "Study", "Variation", "chain", "change", "over", "product", "zipped"]
