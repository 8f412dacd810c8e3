"""What encoders make of a flight is kept as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from painted_crossing import write_crossing
from tiny_fusion_bundle import write_fusion_bundle

from mmedge_lab.training import feature_cache
from mmedge_lab.training.feature_cache import SCAN, SCAN_STEP, cached_flight, fusion_arrays
from mmedge_ros.core.data_types import CAMERA, RADAR

STRIDE_NS = 100_000_000


def test_a_flight_is_kept_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = feature_cache._fusion_input

    def fails_once(unit, geometry):
        return None if (unit.modality, unit.sequence) == (CAMERA, 3) else usual(unit, geometry)

    monkeypatch.setattr(feature_cache, '_fusion_input', fails_once)
    flight = write_crossing(tmp_path / 'one', seconds=0.6)
    (tmp_path / 'bundle').mkdir()
    bundle = write_fusion_bundle(tmp_path / 'bundle')
    made = fusion_arrays(bundle, (('none',), ('small',)), STRIDE_NS, flight, 1, lambda _: None)
    cached = cached_flight(made)
    assert cached.size == (320, 240)
    assert cached.levels(CAMERA) == cached.levels(RADAR) == ('small',)
    assert cached.grids[CAMERA, 'small'].shape == (18, 64, 30, 40)
    assert cached.grids[RADAR, 'small'].shape == (12, 20, 30, 40)
    assert len(cached.grids[SCAN, 'small']) == len(range(0, 12, SCAN_STEP))
    assert np.flatnonzero(~cached.units[CAMERA].usable).tolist() == [3]
    assert cached.units[RADAR].usable.all()
    assert not cached.grids[CAMERA, 'small'][3].any()
    times = cached.units[CAMERA]
    assert (times.available_ns - times.stamps_ns == 15_000_000).all()
    frame = cached.truth.at(int(times.stamps_ns[4]))
    assert frame.labels.tolist() == ['person', 'car']
    assert frame.ranges[0] == pytest.approx(6.0, abs=0.2)
