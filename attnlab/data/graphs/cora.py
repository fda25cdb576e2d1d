"""Cora: 2,708 papers on machine learning, their citations and their words (Sen et al. 2008)."""

import base64

import numpy as np

from attnlab.data.graphs import graph_file
from attnlab.data.graphs.graphs import Graph
from attnlab.data.io.files import DataError
from attnlab.data.io.published import Source, read
from attnlab.data.names import PARTS

# The matrices of Shchur et al. 2018. The address names a branch and not a commit; the hash identifies the version.
MATRICES = Source(
    set="cora",
    file="cora.npz",
    sha256="068e22d90c3849b4057dfb05851741428992af058efcd4e7ebb4186f3d581de2",
    size=540_580,
    url="https://raw.githubusercontent.com/shchur/gnn-benchmark/master/data/npz/cora.npz",
)
SOURCES = (MATRICES,)

# The part of each node, in the order of the file, in base64. A node has two bits and a byte four nodes, the lowest bits
# first. 1 is train, 2 valid, 3 test, and 0 none. Planetoid (Yang et al. 2016) publishes this split as pickles, which
# run code when they are read. There, the order of the nodes is 140 train, 500 valid, others, 1,000 test.
PLANETOID = """
7uy/i96wDjw8wsAA8zsIAPsGyzztLML4zzs8/PAOPAzPLrCE8782KvfrwA2OD++8AuspnDztCQM9AIx8ONjsCA8MO4848w8PzaDDoQP7zovM8ko8
swDKPz8I/M+4s8E6MbIzDwg6MMCOzgsjLI8sP8zw68M9vsKDMAPwM/wrAPw4ByuMA7j+LvKKP8AAyyr8rDrDCBs8zLDy608AMKMOzzwz6OrAjI/e
uL/MzAAD9J8I+APzjDvsPszBozAz/OgOMmowIMSMMMIPMDsb8AAOeDwwyMDwwADww0T8vM8DLAANjM4AMEzCz4NDviMI8OCiy8HEuv8vrkfKM9/s
O5jQI8GN3QKwM+rPMUz7yOI0w+M/gzD/DQK78D5PMzs/yD4eAw98MD5sgDBLDCyzP0MPDwMAuPsIM+gAo/2DAj8u/LwOAMjkPIwyMPwvwEjnqODD
IrDoO8+ozsGo8NUzMoC7vM8P8KzAsA/O/w8uPA4z8++Kgg/DM7HDyyAP8488887Ew9gNgvAr62gC7PLI/DAhyNOMAAr7MMyre5/Kffg4Pzz/3MM+
sMwOLr3ILDP8k7zvInPzTCAKwD//wA/zwCP/8/wYDsw2sqPw7P+zniPAdLtHyK8M8zm2/nvvzGiQ8shI86f8wI3pBymPq+M6yuHs8LtAjvODMIDv
IzP8C465yANwwA77G85MqwIAsI/MMASg5AvPDPyyswwM66EA464pm9rMAowTM4w87yj/D6KKP9tAOwlOP2jwA4AwOsMoM+/DuMDA4IPKzTTjLjPz
vT+MILmvzTgwjzsK/PMCyM6j8gAg3DsEAPADJ/0zPo8M7/k8/iCAPCA0OjOwwU/vIOKDBj77D92O//v8BOEJ/wDzv8/EwysP4++MDyws0/t7/wEP
AM8PCMM=
"""


def parts() -> tuple[Graph, dict[str, np.ndarray]]:
    """Returns the graph, and the nodes of each part.

    There are 140 nodes for training, twenty of each class, 500 for validation and 1,000 for test.

    Raises:
      DataError: as `published.read`.
    """
    graph = graph_file.read(read(MATRICES), MATRICES.file)
    packed = np.frombuffer(base64.b64decode(PLANETOID), np.uint8)
    part = (packed[:, None] >> np.array([0, 2, 4, 6], np.uint8)[None, :] & 3).ravel()
    if len(part) != len(graph.labels):
        raise DataError(f"{MATRICES.file} has {len(graph.labels)} nodes, but the published parts have {len(part)}")
    return graph, {name: np.flatnonzero(part == n).astype(np.int32) for n, name in enumerate(PARTS, start=1)}
