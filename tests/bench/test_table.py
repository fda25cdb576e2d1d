from types import SimpleNamespace

import pytest
from rich.console import Console

from attnlab.analysis.roofline import Machine
from attnlab.bench.measuring import Measured
from attnlab.bench.table import roof, tables
from tests.bench.stand_ins import measured

MACHINE = Machine("cpu", 4e11, 1e10)
REFUSED = Measured("delta", "full", "forward", 512, why_not="does not support this mask")


def shown(table, width=100):
    console = Console(width=width, record=True, file=SimpleNamespace(write=lambda _: None, flush=lambda: None))
    console.print(table)
    return console.export_text().splitlines()


def test_time_memory_and_peers():
    found = [*measured("softmax-blockwise", which="forward+backward", peers=("fast-transformers",)), REFUSED]
    times, missing, memory, _, roofs, beside = (shown(table) for table in tables(found, MACHINE))
    assert max(len(line.rstrip()) for line in (*times, *memory, *roofs, *beside)) <= 100
    row = next(line for line in times if line.startswith("softmax-blockwise"))
    assert row.split()[:3] == ["softmax-blockwise", "causal", "fwd+bwd"]
    assert "16.8 ms" in row
    assert "2.00 (1.6" in row
    assert roofs[-1].split()[-1] == "compute"
    assert next(line for line in times if line.startswith("delta")).split()[3:] == ["–"] * 5
    assert beside[-1].split() == ["softmax-blockwise", "causal", "fwd+bwd", "4096", "1.50", "(1.40–1.60)"]
    assert missing == ["delta, full: does not support this mask"]
    assert "67.1 MB" in next(line for line in memory if line.startswith("softmax"))


def test_without_peers_there_is_no_table_of_peers():
    assert len(tables(measured(), MACHINE)) == 4


def test_the_roofline_follows_from_intensity():
    (last,) = measured(lengths=(4096,))
    # Intensity: 256 T² operations over 1,024 T bytes. Rate: 256 T² operations in T² nanoseconds.
    assert last.intensity == 1024
    assert last.rate == pytest.approx(2.56e11)
    assert roof(last, MACHINE) == "64% compute"
    assert roof(last, Machine("slow", 4e12, 1e9)) == "25% memory"
    assert roof(REFUSED, MACHINE) == roof(None, MACHINE) == "–"
