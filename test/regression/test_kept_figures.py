"""A small flight keeps its figures: the whole way from pixels to a table.

Where a change moves them on purpose, `python test/regression/test_kept_figures.py` writes them
anew; say in the commit why.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mmedge_ros.commands.main import app

KEPT = Path(__file__).parent / 'rivals.json'
FLIGHT = ('--scenario', 'park_day_middle', '--seconds', '3')
BENCH = (
    *('--rows', 'blocking_cached,non_blocking,pipelined_min', '--set', 'shares=100,50'),
    *('--detector', 'flight_people'),
)
# How far figures may move: networks differ by a few thousandths between processors, times come
# from a profile and hardly move.
TOLERANCES = {
    'streaming_mean_iou': 0.02,
    'mean_iou': 0.02,
    'recall': 0.03,
    'precision': 0.03,
    'latency_p50': 1.0,
    'latency_p95': 3.0,
    'age_p50': 3.0,
    'late': 0.03,
    'dropped': 0.03,
    'encodes': 0.5,
    'processor': 0.02,
}


def measured(folder: Path) -> dict[str, dict[str, float]]:
    """Simulate a flight, and return the figures of each row of the bench."""
    for words in (
        ('simulate', folder / 'set' / 'flight', *FLIGHT),
        ('lab', 'bench', 'rivals', folder / 'set', *BENCH, '--out', folder / 'out'),
    ):
        done = CliRunner().invoke(app, list(map(str, words)), env={'NO_COLOR': '1'})
        assert done.exit_code == 0, done.output
    content = json.loads((folder / 'out' / 'rivals.json').read_text())
    return {
        f'{table["title"]}: {row["name"]}': {
            name: row['values'][name]['value'] for name in TOLERANCES if name in row['values']
        }
        for table in content['tables']
        for row in table['rows']
    }


@pytest.mark.timeout(600)
def test_a_small_flight_keeps_its_figures(tmp_path: Path) -> None:
    kept, now = json.loads(KEPT.read_text()), measured(tmp_path)
    assert list(now) == list(kept)
    moved = [
        f'{row}: {name} was {figures[name]}, is {now[row].get(name)}'
        for row, figures in kept.items()
        for name in figures
        if now[row].get(name) != pytest.approx(figures[name], abs=TOLERANCES[name])
    ]
    assert moved == []


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as temporary:
        rows = measured(Path(temporary)).items()
    lines = (f'{json.dumps(row)}: {json.dumps(figures)}' for row, figures in rows)
    KEPT.write_text('{\n' + ',\n'.join(lines) + '\n}\n')
