"""How values are mixed: one mechanism a file, behind the contract of `base`; no parameters.

`MECHANISMS` lists them by name: the line that adds one brings it into the contract suite, the command line, and every
ablation. One's own joins by `attnlab.MECHANISMS["mine"] = Mine()`.
"""

from attnlab.mechanisms.base import Cost, Mechanism, State, causal
from attnlab.mechanisms.linear import Linear
from attnlab.mechanisms.maps import Watched, weights
from attnlab.mechanisms.softmax import Softmax

MECHANISMS: dict[str, Mechanism] = {
    "softmax": Softmax(),
    "linear": Linear(),
}

__all__ = ["MECHANISMS", "Cost", "Linear", "Mechanism", "Softmax", "State", "Watched", "causal", "weights"]
