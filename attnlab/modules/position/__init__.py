"""Position encodings, through three hooks: `add` to the input, `rotate` q and k, add a `bias` to scores.

`Position` is a frozen configuration; `POSITIONS` lists them by name. Its method `create` returns the
`PositionEncoding` that a network holds: the configuration itself, or a module if it has parameters. The network owns
it and passes it to its layers, so the layers share its parameters.
"""

from attnlab.modules.position.absolute import Learned, Sinusoidal
from attnlab.modules.position.base import Position, PositionEncoding
from attnlab.modules.position.by_layer import LayerPositions
from attnlab.modules.position.floater import Floater
from attnlab.modules.position.gaussian_2d import Quadratic2D
from attnlab.modules.position.grid import Learned2D, Rotary2D, Sinusoidal2D
from attnlab.modules.position.relative import T5, ALiBi, Shaw
from attnlab.modules.position.rotary import Rotary, XPos
from attnlab.modules.position.shifted_by_one import ShiftedByOne
from attnlab.registry import Registry

POSITIONS: dict[str, Position] = Registry("POSITIONS")
POSITIONS |= {
    "none": Position(),
    "sinusoidal": Sinusoidal(),
    "learned": Learned(),
    "shaw": Shaw(),
    "t5": T5(),
    "rotary": Rotary(),
    "xpos": XPos(),
    "alibi": ALiBi(),
    "floater": Floater(),
    "sinusoidal-2d": Sinusoidal2D(),
    "learned-2d": Learned2D(),
    "rotary-2d": Rotary2D(),
    "quadratic-2d": Quadratic2D(),
}

__all__ = [
    "POSITIONS",
    "T5",
    "ALiBi",
    "Floater",
    "LayerPositions",
    "Learned",
    "Learned2D",
    "Position",
    "PositionEncoding",
    "Quadratic2D",
    "Rotary",
    "Rotary2D",
    "Shaw",
    "ShiftedByOne",
    "Sinusoidal",
    "Sinusoidal2D",
    "XPos",
]
