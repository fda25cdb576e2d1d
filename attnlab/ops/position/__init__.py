"""Functions of positions: added to inputs, rotating queries and keys, or of the distance of two positions."""

from attnlab.ops.position.absolute import flow_path, frequencies, grid, normalised, sinusoidal, sinusoidal_2d
from attnlab.ops.position.relative import alibi_slopes, clipped, relative_scores, relative_values, t5_buckets
from attnlab.ops.position.rotary import XPOS_GAMMA, rotary, rotary_2d, xpos, xpos_max_length
from attnlab.ops.position.scaling import SCALINGS, LinearScaling, Llama3Scaling, RotaryScaling, YarnScaling

__all__ = [
    "SCALINGS",
    "XPOS_GAMMA",
    "LinearScaling",
    "Llama3Scaling",
    "RotaryScaling",
    "YarnScaling",
    "alibi_slopes",
    "clipped",
    "flow_path",
    "frequencies",
    "grid",
    "normalised",
    "relative_scores",
    "relative_values",
    "rotary",
    "rotary_2d",
    "sinusoidal",
    "sinusoidal_2d",
    "t5_buckets",
    "xpos",
    "xpos_max_length",
]
