"""Log-mel frames: the power of sound in each frequency band, in one short window after another."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

FLOOR = 1e-6  # power below this counts as silence; the power of a recording is about one


@dataclass(frozen=True)
class LogMel:
    """Computes log-mel frames of sound.

    A frame is the natural logarithm of the power in each band. The bands are triangles of equal width on the mel scale,
    2595 log₁₀(1 + f / 700), from 0 to rate / 2. A band is a weighted mean over its frequencies, so white noise of
    variance one has power one in every band. Power below `FLOOR` is raised to it. Frame t covers the samples
    t·hop … t·hop + size − 1.

    Raises:
      ValueError: if a window has fewer than two samples, a step has none, or there is no band.

    Source: Davis and Mermelstein 1980; the mel scale is that of O'Shaughnessy 1987.
    """

    rate: int = 8000
    """Samples per second."""
    bands: int = 40
    """Number of bands."""
    window: float = 0.025
    """Length of a frame in seconds."""
    step: float = 0.010
    """Time from one frame to the next in seconds."""

    def __post_init__(self):
        if self.size < 2 or self.hop < 1 or self.bands < 1:
            raise ValueError(
                f"{self}: a window must have at least 2 samples, a step at least 1, and bands must be at least 1"
            )

    @property
    def size(self) -> int:
        """Number of samples in a frame."""
        return round(self.rate * self.window)

    @property
    def hop(self) -> int:
        """Number of samples from one frame to the next."""
        return round(self.rate * self.step)

    @cached_property
    def points(self) -> int:
        """Number of samples of the Fourier transform.

        It is the least power of two that is at least twice the frame, because the lowest bands are narrower than the
        resolution of the frame itself.
        """
        return 2 ** int(np.ceil(np.log2(2 * self.size)))

    @cached_property
    def filters(self) -> np.ndarray:
        """The weight of each frequency in each band [points / 2 + 1, bands]. The weights of a band sum to one.

        Raises ValueError if a band is so narrow that it contains no frequency of the transform.
        """
        edges = hertz(np.linspace(0, mel(self.rate / 2), self.bands + 2))
        low, centre, high = edges[:-2], edges[1:-1], edges[2:]
        f = np.fft.rfftfreq(self.points, 1 / self.rate)[:, None]
        triangles = np.maximum(0, np.minimum((f - low) / (centre - low), (high - f) / (high - centre)))
        total = triangles.sum(axis=0)
        if not total.all():
            raise ValueError(
                f"{self}: band {int(np.argmin(total))} is narrower than the frequency resolution; use fewer bands"
            )
        return (triangles / total).astype(np.float32)

    def count(self, samples: int | np.ndarray) -> np.ndarray:
        """Returns the number of frames that lie completely within a number of samples. Works elementwise on arrays."""
        return np.maximum((np.asarray(samples) - self.size) // self.hop + 1, 0)

    def power(self, samples: np.ndarray) -> np.ndarray:
        """Returns the power at each frequency, |FFT(h x)|² / Σh², where h is Hann's window.

        Args:
          samples: the samples [... N].

        Returns:
          The power [... T points/2+1].
        """
        # numpy's window begins and ends with a zero, which would waste two samples.
        shape = np.hanning(self.size + 2)[1:-1].astype(np.float32)
        shape /= np.sqrt(np.sum(shape**2))
        stretches = np.lib.stride_tricks.sliding_window_view(samples, self.size, axis=-1)[..., :: self.hop, :]
        found = np.fft.rfft(stretches * shape, self.points)
        return found.real**2 + found.imag**2

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """Returns the frames [... T bands] float32 of samples [... N], where T is `count(N)`."""
        return np.log(np.maximum(self.power(samples) @ self.filters, np.float32(FLOOR)))


def mel(hertz: float | np.ndarray) -> np.ndarray:
    """Converts hertz to mel.

    >>> round(float(mel(1000.0)))
    1000
    """
    return 2595 * np.log10(1 + np.asarray(hertz) / 700)


def hertz(mel: float | np.ndarray) -> np.ndarray:
    """Converts mel to hertz."""
    return 700 * (10 ** (np.asarray(mel) / 2595) - 1)
