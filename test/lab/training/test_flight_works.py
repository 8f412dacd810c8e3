"""Arrays of flights are made once, and no flight serves two ends."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from truth_fixtures import write_short_flights

from mmedge_lab.training import TrainingError
from mmedge_lab.training.flight_works import Arrays, FlightArrays
from mmedge_lab.worker_processes import OnShare


def silent(share: float, words: str) -> None: ...


def counted(log: Path, path: Path, number: int, _: OnShare) -> Arrays:
    log.write_text((log.read_text() if log.exists() else '') + path.name)
    return {'number': np.array([number])}


def test_arrays_are_made_once_of_each_flight_and_kind(tmp_path: Path) -> None:
    write_short_flights(tmp_path / 'set', 2, 0.3)
    flights, log = sorted((tmp_path / 'set').iterdir()), tmp_path / 'log'
    make = partial(counted, log)
    for _ in range(2):
        arrays = FlightArrays(tmp_path / 'work', 'bundle', {'some': flights}, 1)
        numbers = [of['number'].tolist() for of in arrays.of('some', make, silent).values()]
        assert numbers == [[0], [1]]
    assert log.read_text() == 'flight_0flight_1'
    arrays.of('some', make, silent, kind='other')
    FlightArrays(tmp_path / 'work', 'another', {'some': flights}, 1).of('some', make, silent)
    assert log.read_text() == 'flight_0flight_1' * 3
    next((tmp_path / 'work').glob('*/*/other/number.npy')).write_bytes(b'nonsense')
    with pytest.raises(TrainingError, match='run the same command again'):
        arrays.of('some', make, silent, kind='other')
    (tmp_path / 'work/checkpoint.pt').write_bytes(b'of another training')
    before = len(list((tmp_path / 'work').iterdir()))
    arrays.remove()
    assert len(list((tmp_path / 'work').iterdir())) == before - 1
    assert (tmp_path / 'work/checkpoint.pt').exists()
