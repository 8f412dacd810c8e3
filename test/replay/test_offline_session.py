"""From a path to the record of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from bag_fixtures import RADAR, recording, write_bag
from gated_bundle import write_gated_bundle

from mmedge_ros.core.data_types import Decision
from mmedge_ros.core.device_profile import DeviceProfile, write_profile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.sensing.radar.filter import RadarLimits
from mmedge_ros.windows.skip_control import SkipParameters

STAGES = ('radar.encode', 'receipt.transport', 'features.transport', 'fusion')


@pytest.fixture(scope='module')
def radar_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    messages = [m for m in recording(2.0) if m[0] == RADAR]
    return write_bag(tmp_path_factory.mktemp('bags') / 'radar', messages=messages)


def profile(folder: Path, *stages: str) -> str:
    path = folder / 'profile.yaml'
    write_profile(
        DeviceProfile('', dict.fromkeys(stages, (0.001, 0.002, 0.003, 0.004, 0.005, 0.006))), path
    )
    return str(path)


def test_a_run_is_recorded_from_end_to_end(radar_only: Path) -> None:
    told: list[tuple[float, Decision]] = []
    record = replay_offline(
        OfflineOptions(str(radar_only)), lambda share, decision: told.append((share, decision))
    )
    assert (record.mode, record.bag) == ('offline', str(radar_only))
    assert (record.window, record.stride, record.deadline) == (0.5, 0.1, 0.05)
    assert len(record.decisions) == record.windows == 20
    assert record.units['radar'].encoded == len(record.features) == 50
    assert record.camera is None
    assert record.camera_pose is None
    assert record.radar_pose is not None
    assert record.duration == pytest.approx(1.96)
    assert record.wall_time > 0
    assert record.resources['peak_rss_mb'] > 10
    assert any('no camera' in text for text in record.problems)
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] < shares[-1] <= 1.0
    assert [decision for _, decision in told] == record.decisions


def test_parameters_reach_their_parts(radar_only: Path) -> None:
    windows = WindowParameters(stride=0.2, window=0.4)
    record = replay_offline(
        OfflineOptions(
            str(radar_only),
            pipeline=PipelineParameters(windows=windows),
            limits=RadarLimits(max_range=6.0),
        )
    )
    assert len(record.decisions) == record.windows == 10
    assert (record.window, record.stride) == (0.4, 0.2)
    assert all(len(unit.returns) == 3 for unit in record.features), 'the wall is too far away'


def test_the_gate_of_the_bundle_lets_the_camera_rest(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / 'both', messages=recording(2.0))
    model = write_gated_bundle(tmp_path / 'gated')
    stages = {
        stage: (seconds,) * 6
        for stage, seconds in (
            ('camera.encode', 0.010),
            *((stage, 0.001) for stage in STAGES),
        )
    }
    path = tmp_path / 'profile.yaml'
    write_profile(DeviceProfile('', stages), path)

    def replayed(alpha: float) -> RunRecord:
        pipeline = PipelineParameters(skipping=SkipParameters(delta=alpha))
        return replay_offline(
            OfflineOptions(str(bag), str(model), profile=str(path), pipeline=pipeline)
        )

    gated, full = replayed(0.05), replayed(0.0)
    assert full.units['camera'].skipped == 0
    assert all(decision.latency >= 0.0 for decision in full.decisions)
    assert gated.units['camera'].skipped >= 5
    assert gated.units['camera'].encoded + gated.units['camera'].skipped == 40
    early = [decision for decision in gated.decisions if decision.latency < 0.0]
    assert any('camera' in decision.skipped for decision in early)
    assert len(gated.decisions) == len(full.decisions)
