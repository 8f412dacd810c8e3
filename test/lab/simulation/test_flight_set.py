"""Sets of flights: kept, completed, side by side, and stopped in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hand_made_flight import decoded, sensors

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation import flight as flight_module
from mmedge_lab.simulation.flight_folder import FLIGHT_FILE
from mmedge_lab.simulation.flight_set import PlannedFlight, simulate_set

ROOT = Path(__file__).resolve().parents[3]
FLIGHTS = [
    PlannedFlight(f'meadow_day_near_{seed}', 'meadow_day_near', seed, 0.5) for seed in (1, 2)
]


@pytest.fixture
def grey(monkeypatch: pytest.MonkeyPatch) -> None:
    """A camera that costs nothing, for what is not about pictures."""
    monkeypatch.setattr(flight_module, 'standard_sensors', sensors)


def written(folder: Path) -> dict[str, int]:
    return {path.name: (path / FLIGHT_FILE).stat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.usefixtures('grey')
class TestOneAfterAnother:
    def test_whole_flights_are_kept(self, tmp_path: Path) -> None:
        simulate_set(tmp_path, FLIGHTS)
        before = written(tmp_path)
        progress: list[tuple[float, int]] = []
        simulate_set(tmp_path, FLIGHTS, on_progress=lambda *of: progress.append(of))
        assert written(tmp_path) == before
        assert progress == [(1.0, 2)]

    def test_only_what_is_missing_or_different_is_made(self, tmp_path: Path) -> None:
        simulate_set(tmp_path, FLIGHTS)
        before = written(tmp_path)
        longer = FLIGHTS[1]._replace(seconds=0.6)
        third = PlannedFlight('third', 'park_day_near', 3, 0.5)
        simulate_set(tmp_path, [FLIGHTS[0], longer, third])
        after = written(tmp_path)
        assert after.keys() == {*before, 'third'}
        assert after[FLIGHTS[0].name] == before[FLIGHTS[0].name]
        assert after[longer.name] != before[longer.name]


class TestSideBySide:
    def test_two_processes_make_the_same_of_the_same_seed(self, tmp_path: Path) -> None:
        twins = [PlannedFlight(name, 'street_night_near', 3, 0.5) for name in ('a', 'b')]
        progress: list[tuple[float, int]] = []
        one, other = simulate_set(tmp_path, twins, 2, lambda *of: progress.append(of))
        assert decoded(one) == decoded(other)
        assert progress[-1] == (1.0, 2)

    def test_one_flights_failure_is_said_and_ends_the_others(self, tmp_path: Path) -> None:
        impossible = PlannedFlight('impossible', 'meadow_day_near', 1, 1e9)
        endless = PlannedFlight('endless', 'meadow_day_near', 1, 3000.0)
        with pytest.raises(SimulationError, match=r'flight impossible: .*must last'):
            simulate_set(tmp_path / 'set', [endless, impossible], 2)
        left = list((tmp_path / 'set').glob('*')) if (tmp_path / 'set').exists() else []
        assert left == []


PROGRAM = """
import signal, sys
from pathlib import Path
from hand_made_flight import sensors
from mmedge_lab.simulation import flight
from mmedge_lab.simulation.flight_set import PlannedFlight
from mmedge_lab.simulation.flight_set import simulate_set

# The processes read this file too: their camera costs nothing.
flight.standard_sensors = sensors

def stop(number, frame):
    raise SystemExit(3)

if __name__ == '__main__':
    signal.signal(signal.SIGTERM, stop)
    flights = [PlannedFlight(f'f{n}', 'meadow_day_near', n, 60.0) for n in (1, 2)]
    simulate_set(Path(sys.argv[1]), flights, 2, lambda share, _: print(share, flush=True))
"""


@pytest.mark.parametrize(('number', 'code'), [(signal.SIGTERM, 3), (signal.SIGKILL, -9)])
def test_a_stopped_set_leaves_neither_processes_nor_halves(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    program = tmp_path / 'program.py'
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / 'set')],
        env={**os.environ, 'PYTHONPATH': f'{ROOT}{os.pathsep}{ROOT / "test/support"}'},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert float(process.stdout.readline()) == 0.0
    # The second word comes from a flight that is being written.
    process.stdout.readline()
    process.send_signal(number)
    # The output ends when the last process has: each holds its other end.
    process.communicate(timeout=60)
    assert process.returncode == code
    assert list((tmp_path / 'set').iterdir()) == []
