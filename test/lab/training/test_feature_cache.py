"""What encoders make of a recording is kept as it was, and nothing else is taken for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from painted_crossing import write_crossing

from mmedge_lab.training.feature_cache import (
    SCAN,
    SCAN_STEP,
    Grid,
    RecordingEncoder,
    read_flight,
    write_flight,
)
from mmedge_ros.core.data_types import CAMERA, RADAR, Unit
from mmedge_ros.encoding import EncodingError
from mmedge_ros.replay.recording import Recording

STRIDE_NS = 100_000_000


def numbered(shape: tuple[int, ...], unit: Unit) -> Grid:
    return np.full(shape, unit.sequence, np.float16)


def encode_picture(unit: Unit) -> tuple[Grid, Grid]:
    if unit.sequence == 3:
        raise EncodingError('a broken picture')
    return numbered((64, 30, 40), unit), numbered((64, 30, 40), unit)


def encode_scan(unit: Unit) -> tuple[Grid, Grid]:
    return numbered((20, 30, 40), unit), numbered((16, 30, 40), unit)


class Opened:
    """Opens encoders and counts how often it was asked to."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, recording: Recording) -> Mapping[tuple[str, str], RecordingEncoder]:
        self.times += 1
        return {(CAMERA, 'large'): encode_picture, (RADAR, 'large'): encode_scan}


@pytest.fixture(scope='module')
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_crossing(tmp_path_factory.mktemp('flights') / 'one', seconds=0.6)


def test_a_flight_is_kept_row_by_row(flight: Path, tmp_path: Path) -> None:
    write_flight(flight, tmp_path / 'one', 'key', Opened(), STRIDE_NS)
    cached = read_flight(tmp_path / 'one')
    assert cached.size == (320, 240)
    assert cached.levels(CAMERA) == cached.levels(RADAR) == ('large',)
    assert cached.grids[CAMERA, 'large'].shape == (18, 64, 30, 40)
    assert cached.grids[RADAR, 'large'][:, 0, 0, 0].tolist() == list(range(12))
    assert cached.grids[SCAN, 'large'][:, 0, 0, 0].tolist() == list(range(0, 12, SCAN_STEP))
    times = cached.units[CAMERA]
    assert (times.available_ns - times.stamps_ns == 15_000_000).all()
    objects = cached.truth.at(int(times.stamps_ns[4]))
    assert objects.classes.tolist() == [0, 2]
    assert objects.clear.all()
    assert objects.ranges[0] == pytest.approx(6.0, abs=0.2)


def test_a_unit_that_cannot_be_encoded_is_marked(flight: Path, tmp_path: Path) -> None:
    write_flight(flight, tmp_path / 'one', 'key', Opened(), STRIDE_NS)
    cached = read_flight(tmp_path / 'one')
    assert np.flatnonzero(~cached.units[CAMERA].usable).tolist() == [3]
    assert cached.units[RADAR].usable.all()
    assert not cached.grids[CAMERA, 'large'][3].any()


def test_it_is_encoded_once_unless_something_changed(flight: Path, tmp_path: Path) -> None:
    opened = Opened()
    for key, times in (('a', 1), ('a', 1), ('b', 2)):
        write_flight(flight, tmp_path / 'one', key, opened, STRIDE_NS)
        assert opened.times == times
    assert read_flight(tmp_path / 'one').key == 'b'
    assert [path.name for path in tmp_path.iterdir()] == ['one']
