"""What every file of a bundle is fed with in flight: recorded while flights are encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_lab.judging.bundle_cases import FUSION as FUSED
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.cached_networks import CachedNetworks
from mmedge_lab.judging.encoded_flight import replay_encoded
from mmedge_lab.judging.flight_cases import CachedTruth, encoded_with_truth
from mmedge_lab.rivals.nanomind import QuantisationError
from mmedge_lab.training.flight_pictures import (
    LabelledPicture,
    count_pictures,
    labelled_pictures,
)
from mmedge_ros.aggregation.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.aggregation.network_graph import NetworkGraph
from mmedge_ros.data_types import (
    CAMERA,
    RADAR,
    Box,
    Configuration,
    ModalityConfiguration,
)
from mmedge_ros.encoding.bricks import FUSION, RECOGNISER, brick_name
from mmedge_ros.encoding.bundle.manifest import BundleFile
from mmedge_ros.encoding.bundle.model_bundle import FUSION_PARTS, ModelBundle, open_detector
from mmedge_ros.encoding.classifier_description import SECTION, describe_classifier
from mmedge_ros.encoding.crops import crop_input
from mmedge_ros.encoding.onnx_detector import OnnxDetector
from mmedge_ros.encoding.radar_network import open_radar_network
from mmedge_ros.encoding.tapped_classifier import open_classifier
from mmedge_ros.encoding.tapped_network import TappedNetwork
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.accuracy import Accuracy, accuracy_of
from mmedge_ros.sensing.camera.image import Picture
from mmedge_ros.sensing.radar.filter import RadarLimits, filter_returns
from mmedge_ros.sensing.radar.point_cloud import decode_points

Feed = dict[str, Any]

# Of each brick; more change nothing, and take memory: inputs of a first stage have 3.7 MB.
FEEDS = 24
# Crops smaller than this (px) are not what a recogniser is asked of.
LEAST_HEIGHT = 20.0


@dataclass
class Stage:
    """A file of a brick: its ``place`` in the manifest, and what it was ``fed`` with."""

    place: tuple[str | int, ...]
    file: BundleFile
    fed: list[Feed] = field(default_factory=list)


@dataclass
class Brick:
    """A network of a bundle in stages."""

    name: str
    stages: list[Stage]


class _Recorder:
    """Stands for a session, and keeps some of what it is fed with."""

    def __init__(self, session: Any, stage: Stage) -> None:
        self._session = session
        self._stage = stage

    def run(self, names: Sequence[str], feeds: Mapping[str, Any]) -> Any:
        if len(self._stage.fed) < FEEDS:
            self._stage.fed.append({name: np.array(value) for name, value in feeds.items()})
        return self._session.run(names, feeds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def recorded_bricks(
    bundle: ModelBundle, under_test: BundleUnderTest, flights: Sequence[Path]
) -> list[Brick]:
    """Return every network of a bundle with what its stages are fed with over flights.

    :raises EncodingError: if a network cannot be opened, or fails
    :raises QuantisationError: if flights have too few pictures
    """
    bricks = [_camera(bundle, level, flights) for level in bundle.levels]
    bricks += [_radar(bundle, level, flights) for level in bundle.radar_levels]
    if bundle.has_fusion:
        bricks.append(_fusion(bundle, under_test, flights[0]))
    if SECTION in bundle.content:
        bricks.append(_recogniser(bundle, flights))
    for brick in bricks:
        for stage in brick.stages:
            if len(stage.fed) < FEEDS // 2:
                raise QuantisationError(
                    f'{brick.name}: {stage.file.path.name} ran {len(stage.fed)} times in these '
                    f'flights, {FEEDS // 2} are needed; name longer flights, or more of them'
                )
    return bricks


def pictures(flights: Sequence[Path], count: int) -> list[LabelledPicture]:
    """Return about so many pictures, spread over flights, with what is true of them."""
    step = max(count_pictures(flights) // count, 1)
    return [one for flight in flights for one in labelled_pictures(flight, step)]


def true_crops(flights: Sequence[Path], count: int) -> list[tuple[Picture, Box, str]]:
    """Return pictures with the box and the label of each true object that is large enough."""
    return [
        (one.image, Box(*map(float, box)), str(label))
        for one in pictures(flights, count)
        for box, label in zip(one.truth.boxes, one.truth.labels, strict=True)
        # Boxes outside of the picture are NaN.
        if box[3] - box[1] >= LEAST_HEIGHT
    ]


def _staged(name: str, place: tuple[str | int, ...], files: Sequence[BundleFile]) -> Brick:
    if len(files) == 1:
        return Brick(name, [Stage(place, files[0])])
    return Brick(name, [Stage((*place, 'stages', n), file) for n, file in enumerate(files)])


def _record(network: TappedNetwork, brick: Brick) -> None:
    network.sessions = [
        _Recorder(session, stage)
        for session, stage in zip(network.sessions, brick.stages, strict=True)
    ]


def _camera(bundle: ModelBundle, level: str, flights: Sequence[Path]) -> Brick:
    place = (CAMERA, 'levels', level)
    brick = _staged(brick_name(CAMERA, level), place, bundle.entries(level))
    detector = open_detector(bundle.folder, None, level)
    if not isinstance(detector, OnnxDetector):
        raise QuantisationError(f'{brick.name} is no network of ONNX Runtime')
    _record(detector.tapped, brick)
    for picture in pictures(flights, FEEDS):
        detector.detect(picture.image)
    return brick


def _radar(bundle: ModelBundle, level: str, flights: Sequence[Path]) -> Brick:
    place = (RADAR, 'levels', level)
    brick = _staged(brick_name(RADAR, level), place, bundle.entries(level, RADAR))
    network = open_radar_network(bundle.folder, level)
    _record(network.tapped, brick)
    for flight in flights:
        with Recording(flight) as recording:
            units = [unit for unit in recording.units() if unit.modality == RADAR]
        for unit in units[:: max(len(units) * len(flights) // FEEDS, 1)]:
            network.encode(filter_returns(decode_points(unit.payload), RadarLimits())[0])
    return brick


def _fusion(bundle: ModelBundle, under_test: BundleUnderTest, flight: Path) -> Brick:
    stages = {
        bundle.fusion_part(part): Stage((FUSION, part), bundle.fusion[part])
        for part in FUSION_PARTS
    }

    class _RecordedGraph(NetworkGraph):
        def run(self, feeds: Mapping[str, Any], outputs: Any) -> Any:
            fed = stages[self.path].fed
            if len(fed) < FEEDS:
                fed.append({name: np.array(value) for name, value in feeds.items()})
            return super().run(feeds, outputs)

    files = {part: bundle.fusion_part(part) for part in FUSION_PARTS}
    networks = CachedNetworks(FusionNetworkRuntime(files, 1, _RecordedGraph))
    fly(flight, under_test, networks)
    return Brick(FUSION, list(stages.values()))


def _recogniser(bundle: ModelBundle, flights: Sequence[Path]) -> Brick:
    description = describe_classifier(bundle.folder)
    assert description is not None  # the manifest has its section
    brick = _staged(RECOGNISER, (SECTION,), description.stages)
    classifier = open_classifier(description).classifier
    _record(classifier.network, brick)
    for picture, box, _ in true_crops(flights, FEEDS)[:FEEDS]:
        classifier.classify(crop_input(picture, box, description.form))
    return brick


def fly(
    flight: Path, under_test: BundleUnderTest, networks: CachedNetworks | None, level: str = ''
) -> Accuracy:
    """Replay a flight as the bundle fuses, and judge it.

    :param level: of the radar; '' is the default one
    """
    parts = (ModalityConfiguration(CAMERA), ModalityConfiguration(RADAR, level=level))
    levels = {CAMERA: {''}, RADAR: {level}}
    with Recording(flight) as recording:
        encoded = encoded_with_truth(recording, under_test.encoders(), levels, lambda _: None)
    pipeline = under_test.pipeline(FUSED, networks)
    record = replay_encoded(encoded, pipeline, Configuration(modalities=parts), under_test.profile)
    assert encoded.truth is not None  # `encoded_with_truth` requires it
    accuracy = accuracy_of(record, CachedTruth(encoded.truth), at_once=False)
    assert accuracy is not None  # the truth has scenes
    return accuracy
