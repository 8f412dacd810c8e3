"""Replays from stored features: bit for bit what encoders at work would have given."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from bag_fixtures import point_cloud, recording, write_bag
from fake_fusion_networks import FakeFusionNetworks
from hand_made_maps import Cell, camera_grid_with
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth

from mmedge_lab.judging.bundle_under_test import NOMINAL
from mmedge_lab.judging.encoded_flight import EncodedFlight, encode_flight, load_flight
from mmedge_lab.judging.encoded_flight import replay_encoded as replay
from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    Box,
    Configuration,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.encoding.feature_grid import RADAR_GRID
from mmedge_ros.encoding.unit_encoder import CameraEncoder, RadarEncoder, UnitEncoder
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay.offline_replay import OfflineReplay
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.report import decision_lines
from mmedge_ros.sensing.radar.filter import RadarLimits
from mmedge_ros.tracking.map_decoding import DecodingParameters
from mmedge_ros.windows.feature_fusion import FeatureFusion


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bundle(tmp_path_factory.mktemp('models') / 'tiny')


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bag(
        tmp_path_factory.mktemp('bags') / 'flight', messages=recording_with_truth(1.5)
    )


def configuration(camera: float, level: str, radar: float) -> Configuration:
    return Configuration(
        7,
        0,
        (
            ModalityConfiguration(CAMERA, camera, level),
            ModalityConfiguration(RADAR, radar, 'any'),
        ),
    )


def encoders(bundle: Path) -> dict[str, UnitEncoder]:
    return {CAMERA: CameraEncoder.from_path(bundle), RADAR: RadarEncoder(RadarLimits())}


class GriddedEncoder:
    """Gives features that depend on unit and level, with grids for feature fusion."""

    levels = ('small', 'large')

    def __init__(self, modality: str) -> None:
        self.modality = modality
        self.problems: Counter[str] = Counter()

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        left = 40.0 + unit.sequence + 50.0 * (configuration.level == 'large')
        content = (
            {'grid': np.zeros(RADAR_GRID, np.float16)}
            if unit.modality == RADAR
            else {
                'grid': camera_grid_with([Cell(Box(left, 150.0, left + 60.0, 320.0))]),
                'image_size': (640, 480),
            }
        )
        return UnitFeatures(
            unit.modality,
            unit.sequence,
            unit.stamp_ns,
            unit.available_ns,
            unit.frame_id,
            unit.trail,
            configuration.rate,
            configuration.level,
            configuration_id,
            **content,
        )

    def warm_up(self) -> None:
        pass


def encoded(
    bag: Path, with_encoders: dict[str, UnitEncoder], *levels: str, with_greys: bool = False
) -> EncodedFlight:
    with Recording(bag) as source:
        flight = load_flight(source, PipelineParameters())
        wanted = dict.fromkeys(with_encoders, levels or ('small', 'large'))
        encode_flight(flight, source, with_encoders, wanted, with_greys=with_greys)
    return flight


def played(
    bag: Path,
    pipeline: PerceptionPipeline,
    with_encoders: dict[str, UnitEncoder],
    chosen: Configuration,
) -> str:
    """The decisions of a replay in which the encoders are at work."""
    with Recording(bag) as source:
        pipeline.rig.add_transforms(source.transforms)
        pipeline.rig.set_camera(source.camera)
        live = OfflineReplay(pipeline, with_encoders, NOMINAL, source.periods_ns)
        for server in live.servers.values():
            server.intake.control.schedule.add(chosen)
        live.run(
            e for e in source.events() if not isinstance(e, Unit) or e.modality in with_encoders
        )
    return decision_lines(live.decisions)


@pytest.mark.parametrize(
    'chosen',
    [
        configuration(20.0, 'large', 25.0),
        configuration(10.0, 'small', 25.0),
        configuration(7.0, 'large', 5.0),
    ],
    ids=['full', 'thinned', 'both thinned'],
)
def test_stored_features_give_the_decisions_of_encoders_at_work(
    bag: Path, bundle: Path, chosen: Configuration
) -> None:
    expected = played(bag, PerceptionPipeline(), encoders(bundle), chosen)
    flight = encoded(bag, encoders(bundle))
    record = replay(flight, PerceptionPipeline(), chosen, NOMINAL)
    assert record.decisions
    assert decision_lines(record.decisions) == expected
    # And again: a replay leaves nothing behind in the flight.
    again = replay(flight, PerceptionPipeline(), chosen, NOMINAL)
    assert decision_lines(again.decisions) == expected


def test_pictures_that_are_followed_are_the_same_ones_too(bag: Path, bundle: Path) -> None:
    parts = (ModalityConfiguration(CAMERA, level='large', reuse=3), ModalityConfiguration(RADAR))
    chosen = Configuration(1, 0, parts)
    expected = played(bag, PerceptionPipeline(), encoders(bundle), chosen)
    flight = encoded(bag, encoders(bundle), 'large', '', with_greys=True)
    record = replay(flight, PerceptionPipeline(), chosen, NOMINAL)
    assert np.mean([unit.followed for unit in record.features if unit.modality == CAMERA]) > 0.4
    assert decision_lines(record.decisions) == expected


@pytest.mark.parametrize('level', ['small', 'large'])
def test_the_same_holds_with_feature_fusion(bag: Path, level: str) -> None:
    def fused() -> PerceptionPipeline:
        fusion = FeatureFusion(FakeFusionNetworks(), DecodingParameters(0.1))
        return PerceptionPipeline(None, fusion)

    made: dict[str, UnitEncoder] = {m: GriddedEncoder(m) for m in (CAMERA, RADAR)}
    chosen = Configuration(
        1, 0, tuple(ModalityConfiguration(m, 10.0, level) for m in (CAMERA, RADAR))
    )
    expected = played(bag, fused(), made, chosen)
    record = replay(encoded(bag, made), fused(), chosen, NOMINAL)
    assert any(decision.tracks for decision in record.decisions)
    assert decision_lines(record.decisions) == expected


def test_units_of_a_withheld_sensor_never_arrive(bag: Path, bundle: Path) -> None:
    flight = encoded(bag, encoders(bundle))
    chosen = configuration(20.0, 'large', 25.0)
    record = replay(flight, PerceptionPipeline(), chosen, NOMINAL, (CAMERA,))
    assert {unit.modality for unit in record.features} == {CAMERA}
    assert record.radar_pose is not None
    assert all(RADAR not in decision.newest_ns for decision in record.decisions)
    blind = replay(flight, PerceptionPipeline(), chosen, NOMINAL, (RADAR,))
    assert {unit.modality for unit in blind.features} == {RADAR}
    assert blind.camera is not None


def test_a_unit_that_cannot_be_encoded_fails_again_each_time(tmp_path: Path, bundle: Path) -> None:
    messages = recording(1.0)
    place = next(i for i, entry in enumerate(messages) if entry[0] == '/radar/points')
    topic, log_ns, _ = messages[place]
    broken = point_cloud(0, log_ns)
    broken.point_step = 4
    messages[place] = topic, log_ns, broken
    bag = write_bag(tmp_path / 'flight', messages=messages)
    flight = encoded(bag, encoders(bundle))
    for _ in range(2):
        record = replay(flight, PerceptionPipeline(), configuration(20.0, 'large', 25.0), NOMINAL)
        assert record.units[RADAR].failed == 1
        assert any('1 of 25 messages not used' in text for text in record.problems)
