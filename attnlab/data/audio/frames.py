"""Sound as log-mel frames: how much of each pitch there is in one short stretch of it after another."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

FLOOR = 1e-6  # the least power that is told from silence, where a recording's own is about one


@dataclass(frozen=True)
class LogMel:
    """Frames of `window` seconds, one every `step` seconds, of sound with `rate` samples a second.

    A frame is the logarithm (natural) of the power in each of `bands`, which are triangles equally wide on the mel
    scale from 0 to rate / 2 (Davis and Mermelstein 1980; 2595 log₁₀(1 + f / 700), O'Shaughnessy 1987). A band is a
    weighted mean over its frequencies, so that white noise of variance one has power one in each; below `FLOOR` all
    is silence. Frame t covers the samples t·hop … t·hop + size − 1.

    Raises ValueError where a window holds fewer than two samples, none passes between two, or there is no band.
    """

    rate: int = 8000
    bands: int = 40
    window: float = 0.025
    step: float = 0.010

    def __post_init__(self):
        if self.size < 2 or self.hop < 1 or self.bands < 1:
            raise ValueError(f"{self}: a frame needs two samples, a step one, and there must be a band")

    @property
    def size(self) -> int:
        """Samples of a frame."""
        return round(self.rate * self.window)

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return round(self.rate * self.step)

    @cached_property
    def points(self) -> int:
        """Samples of a transform: twice a frame and more, for the lowest bands are narrower than its own lines."""
        return 2 ** int(np.ceil(np.log2(2 * self.size)))

    @cached_property
    def filters(self) -> np.ndarray:
        """The share [points / 2 + 1, bands] of each frequency in each band; of a band they sum to one."""
        edges = hertz(np.linspace(0, mel(self.rate / 2), self.bands + 2))
        low, centre, high = edges[:-2], edges[1:-1], edges[2:]
        f = np.fft.rfftfreq(self.points, 1 / self.rate)[:, None]
        triangles = np.maximum(0, np.minimum((f - low) / (centre - low), (high - f) / (high - centre)))
        total = triangles.sum(axis=0)
        if not total.all():
            raise ValueError(f"{self}: band {int(np.argmin(total))} is narrower than a line of its spectrum")
        return (triangles / total).astype(np.float32)

    def count(self, samples: int | np.ndarray) -> np.ndarray:
        """How many frames so many samples have: those that lie in them whole."""
        return np.maximum((np.asarray(samples) - self.size) // self.hop + 1, 0)

    def power(self, samples: np.ndarray) -> np.ndarray:
        """The power [... T points/2+1] at each frequency, of samples [... N]: |FFT(h x)|² / Σh², h Hann's window."""
        shape = np.hanning(self.size + 2)[1:-1].astype(np.float32)
        shape /= np.sqrt(np.sum(shape**2))
        stretches = np.lib.stride_tricks.sliding_window_view(samples, self.size, axis=-1)[..., :: self.hop, :]
        found = np.fft.rfft(stretches * shape, self.points)
        return found.real**2 + found.imag**2

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """Frames [... T bands], float32, of samples [... N]; T is `count(N)`."""
        return np.log(np.maximum(self.power(samples) @ self.filters, np.float32(FLOOR)))


def mel(hertz: float | np.ndarray) -> np.ndarray:
    """Hertz in mel.

    >>> round(float(mel(1000.0)))
    1000
    """
    return 2595 * np.log10(1 + np.asarray(hertz) / 700)


def hertz(mel: float | np.ndarray) -> np.ndarray:
    """Mel in hertz."""
    return 700 * (10 ** (np.asarray(mel) / 2595) - 1)
