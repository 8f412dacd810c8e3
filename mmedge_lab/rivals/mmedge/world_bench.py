"""Fusion beside each sensor alone and the cheapest range there is, in a world that is hard.

Every row is replayed in virtual time, as it flies with updates between decisions. `before` are
decisions that an earlier checkout made of the same flights. The last table holds what the radar
returned of people beside what the link budget states.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.accuracy_sums import PLACEMENT, placement_sums, state_sums
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Results, Row, Sums, total_of
from mmedge_lab.judging.bundle_cases import (
    CAMERA_ONLY,
    DETECTOR_ONLY,
    FUSION,
    RADAR_ONLY,
    Strategy,
    camera_configuration,
)
from mmedge_lab.judging.bundle_under_test import flight_digest
from mmedge_lab.judging.decision_log import read_decisions
from mmedge_lab.judging.encoded_flight import replay_encoded
from mmedge_lab.judging.judged_flight import FlightOpener, JudgedFlight, bundle_about, bundle_of
from mmedge_lab.rivals.mmedge.ground_plane import GroundPlaneEncoder
from mmedge_lab.simulation.flight_folder import read_description
from mmedge_ros.core.data_types import CAMERA, RADAR, FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.bundle.model_bundle import model_levels
from mmedge_ros.geometry.rangefinder import HeightReport
from mmedge_ros.replay.ground_truth import PERSON, GroundTruth
from mmedge_ros.report.accuracy_samples import stream_samples
from mmedge_ros.report.report import DECISIONS, UPDATES
from mmedge_ros.report.truth_matching import ground_distances

SHIPPED, RADAR_ALONE = 'shipped', 'radar alone'
_DETECTION = "radar's detection of people by distance"
# A return so near on the ground is taken for one of the body, m; those of clutter are counted as
# near to places as far away, where nobody is, rad beside.
_BODY, _BIN, _BINS = 1.0, 5.0, 10
_APART, _BESIDE = 2.5, 0.25
_TURNED = np.array(
    [[math.cos(_BESIDE), math.sin(_BESIDE)], [-math.sin(_BESIDE), math.cos(_BESIDE)]]
)
_COUNTS = ('returned', 'stated', 'scans', 'clutter', 'beside')
_FIGURES: Mapping[str, Figure] = {
    **PLACEMENT,
    'streaming_iou': Figure('streaming IoU, 20 px up', 'overlap_20px', 'people_20px'),
    # 0.67 deviations hold half of what is normal.
    'angle': Figure('error of foot, rad', 'angle', digits=4, quantile=0.5, scale=1.0 / 0.6745),
    'returned': Figure('returned', 'returned', 'scans'),
    'stated': Figure('stated', 'stated', 'scans'),
    'clutter': Figure('by clutter alone', 'clutter', 'beside'),
}


def bench(request: BenchRequest, *, before: str = '', profile: str = '') -> Bench:
    """Compare what is placed where camera, radar or odometry fail.

    :param before: folder with the report of each flight, by its name, of another checkout
    :param profile: file of service times; nominal ones without it
    """
    bundle, subjects = bundle_of(request.detector, profile), request.flights()
    level = model_levels(bundle.folder)[1]
    rows = [
        Row(SHIPPED, partial(_replayed, FUSION, level), 'as it flies'),
        Row('camera alone', partial(_replayed, CAMERA_ONLY, level), CAMERA_ONLY.words),
        Row(RADAR_ALONE, partial(_replayed, RADAR_ONLY, level), RADAR_ONLY.words),
        Row(
            'camera and ground plane',
            partial(_replayed, DETECTOR_ONLY, level, on_ground=True),
            'range by the foot of the box, no radar',
        ),
    ]
    key = bundle.digest
    if before:
        rows.append(Row('before', partial(_before, Path(before)), 'an earlier checkout'))
        digests = [flight_digest(Path(before) / subject.name) for subject in subjects]
        key += hashlib.sha256(' '.join(digests).encode()).hexdigest()
    known = [read_description(subject.flight) for subject in subjects]
    conditions = tuple((of and of.condition) or 'usual' for of in known)
    return Bench(
        'Who is placed in a world that is hard',
        tuple(rows),
        _FIGURES,
        subjects,
        FlightOpener(bundle, (level,)),
        references=(SHIPPED,),
        key=key,
        about=bundle_about(bundle, subjects),
        derive=partial(_by_condition, conditions),
    )


def _replayed(strategy: Strategy, level: str, of: JudgedFlight, on_ground: bool = False) -> Sums:
    pipeline, ground = of.bundle.pipeline(strategy, of.networks, updates=True), None
    if on_ground:
        events = of.flight.events
        readings = [(e.stamp_ns, e.distance) for e in events if isinstance(e, HeightReport)]
        ground = GroundPlaneEncoder(of.flight, of.truth, pipeline.rig, readings)
    record = replay_encoded(
        of.flight,
        pipeline,
        camera_configuration(level),
        of.bundle.profile,
        strategy.modalities,
        {CAMERA: ground} if ground else {},
    )
    sums = world_sums(record, of.truth)
    if ground:
        return {**sums, 'angle': ground.errors[::10]}
    return {**sums, **detection_sums(record, of.truth)} if strategy == RADAR_ONLY else sums


def _before(folder: Path, of: JudgedFlight) -> Sums:
    report = folder / Path(of.flight.record.bag).name
    decisions = read_decisions(report / DECISIONS)
    updates = read_decisions(report / UPDATES) if (report / UPDATES).exists() else []
    record = replace(of.flight.record, decisions=decisions, updates=updates)
    record.camera = of.flight.camera
    return world_sums(record, of.truth)


def world_sums(record: RunRecord, truth: GroundTruth) -> Sums:
    """Return the sums of a run that the figures are quotients of."""
    return {**state_sums(stream_samples(record, truth)), **placement_sums(record, truth)}


def detection_sums(record: RunRecord, truth: GroundTruth) -> dict[str, float]:
    """Count people and scans by 5 m of range: with a return near the body, and as stated.

    People count who are apart from everything else that moves. ``clutter`` counts places
    ``beside`` them with a return.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    for unit in record.features:
        frame, drone = truth.frame_at(unit.stamp_ns), truth.ego.at(unit.stamp_ns)
        if unit.modality != RADAR or frame is None or drone is None or record.radar_pose is None:
            continue
        places = frame.positions[:, :2]
        alone = (ground_distances(places, places) <= _APART).sum(axis=1) == 1
        people = frame.select((frame.labels == PERSON) & (frame.radar > 0.0) & alone)
        pose = drone.pose.compose(record.radar_pose)
        returns, eye = pose.apply(unit.returns[:, :3]), pose.translation[:2]
        beside = eye + (people.positions[:, :2] - eye) @ _TURNED
        empty = (ground_distances(beside, places) > _APART).all(axis=1)
        near = _has_return(people.positions[:, :2], returns[:, :2])
        by_clutter = _has_return(beside, returns[:, :2])
        for number in range(_BINS):
            within = people.ranges // _BIN == number
            sums[f'returned {number}'] += int(near[within].sum())
            sums[f'stated {number}'] += float(people.radar[within].sum())
            sums[f'scans {number}'] += int(within.sum())
            sums[f'clutter {number}'] += int(by_clutter[within & empty].sum())
            sums[f'beside {number}'] += int((within & empty).sum())
    return dict(sums)


def _has_return(places: FloatArray, returns: FloatArray) -> NDArray[np.bool_]:
    return np.asarray((ground_distances(places, returns) <= _BODY).any(axis=1))


def _by_condition(conditions: Sequence[str], results: Results) -> dict[Row, Sequence[Sums]]:
    made: dict[Row, Sequence[Sums]] = {}
    for condition in dict.fromkeys(conditions):
        for name, every in results.items():
            flights = zip(conditions, every, strict=True)
            made[Row(name, group=condition)] = [of if c == condition else {} for c, of in flights]
    for number in range(_BINS):
        picked = [
            {name: total_of(of, f'{name} {number}') for name in _COUNTS}
            for of in results.get(RADAR_ALONE, ())
        ]
        if any(of['scans'] for of in picked):
            words = f'{number * _BIN:g} to {(number + 1) * _BIN:g} m'
            made[Row(words, group=_DETECTION)] = [_without_clutter(of, picked) for of in picked]
    return made


def _without_clutter(flight: Sums, every: Sequence[Sums]) -> Sums:
    """Take out the returns that clutter would have made near people on its own."""
    beside = sum(total_of(of, 'beside') for of in every)
    share = sum(total_of(of, 'clutter') for of in every) / beside if beside else 0.0
    returned, scans = total_of(flight, 'returned'), total_of(flight, 'scans')
    return {**flight, 'returned': (returned - share * scans) / max(1.0 - share, 1e-9)}
