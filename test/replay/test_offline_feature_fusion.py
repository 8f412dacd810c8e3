"""Offline replay with a bundle that fuses: the work for later windows goes on in between."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from fake_fusion_networks import FakeFusionNetworks
from hand_made_maps import Cell, camera_grid_with
from hand_made_units import LENS, MS, FakeEncoder, at, unit

from mmedge_ros.core.clock import TimeBudget
from mmedge_ros.core.data_types import CAMERA, RADAR, Box, Unit
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.feature_grid import RADAR_GRID
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.replay import offline_replay
from mmedge_ros.replay.offline_replay import OfflineReplay
from mmedge_ros.tracking.map_decoding import DecodingParameters
from mmedge_ros.windows.feature_fusion import FeatureFusion, FusedDetections

STAGES = ('camera.encode', 'radar.encode', 'receipt.transport', 'features.transport', 'fusion')
PROFILE = DeviceProfile('', dict.fromkeys(STAGES, (0.001, 0.0012, 0.0014, 0.0016, 0.0018, 0.002)))
GRID = camera_grid_with([Cell(Box(100.0, 165.0, 150.0, 315.0))])


class Stopwatch:
    """Stands in for the module ``time``: what is measured takes what the networks say."""

    def __init__(self) -> None:
        self.worked_ns = 0
        self._calls = count()

    def perf_counter_ns(self) -> int:
        return self.worked_ns + 1000 * next(self._calls)


class CostlyNetworks(FakeFusionNetworks):
    """Each step takes a millisecond, fusing three."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        super().__init__()
        self._stopwatch = stopwatch

    def step(self, state, modality, grid, stamp_ns):
        self._stopwatch.worked_ns += MS
        return super().step(state, modality, grid, stamp_ns)

    def fuse(self, state) -> np.ndarray:
        self._stopwatch.worked_ns += 3 * MS
        return super().fuse(state)


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    made = Stopwatch()
    monkeypatch.setattr(offline_replay, 'time', made)
    return made


UNLIMITED = TimeBudget()


class WatchedFusion(FeatureFusion):
    """Counts the parts of work done ahead, and what was left when a window was decided."""

    def __init__(self, networks: FakeFusionNetworks | None = None) -> None:
        self.networks = networks or FakeFusionNetworks()
        super().__init__(self.networks, DecodingParameters(0.1))
        self.left: list[int] = []
        self.ahead = 0

    def work_ahead(self, budget: TimeBudget = UNLIMITED) -> None:
        self.ahead += 1
        super().work_ahead(budget)

    def decide(self, end_ns: int, budget: TimeBudget = UNLIMITED) -> tuple[FusedDetections, ...]:
        self.left.append(self._bank.waiting_for(end_ns))
        return super().decide(end_ns, budget)


def encoded(of: Unit) -> dict[str, Any]:
    if of.modality == RADAR:
        return {'grid': np.zeros(RADAR_GRID, np.float16)}
    return {'grid': GRID, 'image_size': (640, 480)}


def flight(seconds: float = 2.0) -> list[Unit]:
    found = [unit(33 * n + 7, CAMERA, n, delay=5) for n in range(round(30 * seconds))]
    found += [unit(50 * n + 3, RADAR, n, delay=2) for n in range(round(20 * seconds))]
    return sorted(found, key=lambda u: u.available_ns)


def replay_of(fusion: FeatureFusion, profile: DeviceProfile | None) -> OfflineReplay:
    pipeline = PerceptionPipeline(None, fusion)
    pipeline.rig.set_camera(LENS)
    found = OfflineReplay(pipeline, {m: FakeEncoder(m, encoded) for m in (CAMERA, RADAR)}, profile)
    found.run(iter(flight()))
    return found


@pytest.mark.parametrize('profile', [PROFILE, None], ids=['profile', 'measured'])
def test_each_unit_is_taken_once_into_each_window_and_most_of_it_ahead(profile, stopwatch) -> None:
    fusion = WatchedFusion(CostlyNetworks(stopwatch))
    found = replay_of(fusion, profile)
    assert [d.window_end_ns for d in found.decisions] == [at(100.0 * n) for n in range(1, 21)]
    assert set(fusion.networks.steps.values()) == {1}
    for end_ns, taken in fusion.networks.fused.items():
        for modality, stamps in taken.items():
            assert stamps == [
                u.stamp_ns
                for u in flight()
                if u.modality == modality and end_ns - 500 * MS < u.available_ns <= end_ns
            ]
    # Of some 25 units in a window.
    assert np.median(fusion.left) <= 1
    # Each unit is in five windows, and only the first of them cannot wait.
    assert fusion.ahead >= 0.7 * fusion.networks.steps.total()
    assert all(d.tracks for d in found.decisions[4:])
    assert all(not u.grid.size for u in found.features)


def test_a_decision_waits_for_what_it_needs_and_for_little_of_the_work_ahead(stopwatch) -> None:
    found = replay_of(WatchedFusion(CostlyNetworks(stopwatch)), None)
    late = [(d.published_ns - d.window_end_ns) / MS for d in found.decisions]
    # Looked at after 2 ms; the last unit's step, fusing, and at most one piece of other work:
    # the step of another window, or a picture that the last one has just made fusible.
    assert min(late) >= 5.0
    assert max(late) < 2.0 + 1.0 + 3.0 + 3.0 + 0.5
    assert np.median(late) < 2.0 + 1.0 + 3.0 + 0.5


def test_units_that_could_not_be_fused_are_told_in_the_record() -> None:
    fusion = WatchedFusion()
    pipeline = PerceptionPipeline(None, fusion)
    replay = OfflineReplay(pipeline, {CAMERA: FakeEncoder(CAMERA), RADAR: FakeEncoder(RADAR)})
    replay.run(iter(flight(0.2)))
    record = RunRecord('bag', 'offline', 0.05, 0.5, 0.1)
    replay.fill(record)
    assert 'feature fusion did without 4 units: a radar unit without a feature grid' in (
        record.problems
    )
