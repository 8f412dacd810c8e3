"""Radar-camera extrinsics from moving people: rotation, time offset, and how sure they are.

The radar is turned; where it sits is taken from the start: at the distances of people a few cm
change nothing that could be measured. With odometry the time offset comes from the drone's own
motion, which is far sharper; without it from how people walk across.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.extrinsics import ExtrinsicsError
from mmedge_ros.replay.extrinsics.agreement import ExtrinsicsAgreement, agreement
from mmedge_ros.replay.extrinsics.box_tracks import BoxTrack, link_boxes
from mmedge_ros.replay.extrinsics.clock_offset import ClockOffset, camera_offset, radar_offset
from mmedge_ros.replay.extrinsics.pairs import (
    MovingReturns,
    Pairs,
    moving_returns,
    pair_by_range,
    pairs_on_paths,
    turned,
    without_strangers,
)
from mmedge_ros.replay.extrinsics.rotation_fit import (
    NAMES,
    Prior,
    RotationFit,
    Spread,
    fit_rotation,
    scan_yaw,
)
from mmedge_ros.replay.extrinsics.sightings import Sightings

# What is less sure than this (half of a 95 % interval) is not observable: rad, s.
_WIDEST = np.array([*np.radians([3.0, 6.0, 6.0]), 0.06])
# What no number of returns averages out, as deviations measured on simulated flights: boxes and
# bodies are not centred alike (rad; m upwards, as the chest reflects more than the legs), and the
# way people step (s), where the time comes from them and not from ego motion.
_SYSTEMATIC = np.array([*np.radians([0.2, 0.3, 0.5]), 0.02])
_SYSTEMATIC_HEIGHT = 0.2
_SYSTEMATIC_BY_EGO = 0.001
# A rough protractor, and clocks of one computer.
_BEFORE = np.array([*np.radians([10.0, 8.0, 8.0]), 0.1])
# What ego motion says so surely (s) needs no people.
_SURE = 0.003
# Elevations (cosines) that differ by less were not measured.
_FLAT = 1e-3
_FEWEST_RETURNS = 150
_FEWEST_BLOCKS = 4
# Directions of returns to their people spread by 1 to 1.5 degrees.
_WIDEST_SPREAD = np.radians(2.0)
_MOST_ROUNDS = 8
_SETTLED = np.array([*np.radians([0.02, 0.1, 0.1]), 1e-3])
_WALK = 'let one or two people walk across and towards the rig, 4 to 12 m away, for 30 s'


@dataclass(frozen=True)
class ExtrinsicsEstimate:
    """One figure in rad or s: by how much it differs from the start, give or take ``half`` (95 %).

    Not ``observable``: the recording says too little of it, and the start was kept.
    """

    value: float
    half: float
    observable: bool

    @property
    def differs(self) -> bool:
        """Whether the start is outside the interval."""
        return self.observable and abs(self.value) > self.half


@dataclass(frozen=True, eq=False)
class CalibrationResult:
    """What was estimated, by the names yaw, pitch, roll and time; poses of both sensors.

    ``notes`` say in words why something is not observable.
    """

    estimates: dict[str, ExtrinsicsEstimate]
    geometry: SensorGeometry
    before: ExtrinsicsAgreement
    after: ExtrinsicsAgreement
    notes: tuple[str, ...]

    @property
    def time_offset(self) -> float:
        """By how much radar stamps are later than camera stamps, s; negative: earlier."""
        return self.estimates['time'].value


def calibrate(
    sightings: Sightings, on_progress: Callable[[float], None] = lambda _: None
) -> CalibrationResult:
    """Estimate by how much the radar is turned, and how late its stamps are.

    :raises ExtrinsicsError: if the recording shows too little; the message says what
    """
    _require_velocities(sightings)
    start = sightings.geometry
    tracks = link_boxes(sightings, start)
    if not tracks:
        raise ExtrinsicsError(
            f'no people are seen in the {len(sightings.pictures)} pictures; {_WALK}, or name '
            'another --detector'
        )
    course = sightings.course()
    on_progress(0.1)
    by_ego, radar_late, still = None, 0.0, start
    if course is not None:
        doppler = radar_offset(sightings, course, start.radar_pose)
        on_progress(0.3)
        by_ego = _difference(doppler.offset, camera_offset(tracks, course, start.camera_pose))
        radar_late = doppler.offset.seconds if doppler.offset else 0.0
        still = _with_radar_turned(start, doppler.turn)
    on_progress(0.5)
    has_elevation = _measures_elevation(sightings)
    returns = moving_returns(sightings, still, radar_late)
    in_camera = start.camera_pose.inverse().compose(start.radar_pose)
    fitted = partial(_fitted, tracks, returns, in_camera, has_elevation)
    prior = Prior(np.zeros(4), _BEFORE)
    free = np.array([True, has_elevation, True, True])
    if by_ego is None or by_ego.deviation > _SURE:
        fit = fitted(prior, free)
        by_ego = by_ego and _joined(by_ego, fit)
    if by_ego is not None:
        free[3] = False
        prior = Prior(np.array([0.0, 0.0, 0.0, by_ego.seconds]), _BEFORE)
        fit = fitted(prior, free)
    on_progress(0.8)
    if not fit.spread.left < _WIDEST_SPREAD:
        raise ExtrinsicsError(
            'moving returns do not follow the people in the pictures (their directions spread by '
            f'{np.degrees(fit.spread.left):.1f} degrees); something else moves, or the lens is '
            f'calibrated wrongly; {_WALK}'
        )
    halves = _halves(fit, by_ego)
    held = ~(halves <= _WIDEST)
    if held[0]:
        raise ExtrinsicsError(f'people moved too little to tell where the radar points; {_WALK}')
    if held.any():
        prior = Prior(np.where(held, 0.0, prior.centre), _BEFORE)
        fit = fitted(prior, free & ~held)
        halves = np.where(held, np.nan, _halves(fit, by_ego))
    geometry = _with_radar_turned(start, turned(fit.parameters[:3]))
    on_progress(1.0)
    return CalibrationResult(
        {
            name: ExtrinsicsEstimate(float(value), float(half), bool(np.isfinite(half)))
            for name, value, half in zip(NAMES, fit.parameters, halves, strict=True)
        },
        geometry,
        agreement(sightings, returns, start, 0.0),
        agreement(sightings, returns, geometry, float(fit.parameters[3])),
        _notes(halves, has_elevation),
    )


def _require_velocities(sightings: Sightings) -> None:
    if all(np.isnan(scan.returns[:, 3]).all() for scan in sightings.scans):
        raise ExtrinsicsError(
            f'none of the {len(sightings.scans)} scans holds returns with a velocity, so that '
            'nothing is known to move; record a radar that measures Doppler'
        )


def _measures_elevation(sightings: Sightings) -> bool:
    returns = np.concatenate([scan.returns for scan in sightings.scans])[:, :3].astype(float)
    up = returns[:, 2] / np.maximum(np.linalg.norm(returns, axis=1), 1e-6)
    return bool(np.subtract(*np.percentile(up, [95, 5])) > _FLAT)


def _difference(radar: ClockOffset | None, camera: ClockOffset | None) -> ClockOffset | None:
    """Return how late the radar is compared with the camera."""
    if radar is None or camera is None:
        return None
    return ClockOffset(
        radar.seconds - camera.seconds,
        float(np.hypot(radar.deviation, camera.deviation)),
        min(radar.blocks, camera.blocks),
    )


def _joined(by_ego: ClockOffset, fit: RotationFit) -> ClockOffset:
    """Return the mean of what ego motion and people say, weighted by how sure each is."""
    by_people = float(np.hypot(fit.deviations[3], _SYSTEMATIC[3]))
    weights = np.array([by_ego.deviation, by_people]) ** -2.0
    mean = weights @ [by_ego.seconds, fit.parameters[3]] / weights.sum()
    return ClockOffset(float(mean), float(weights.sum() ** -0.5), by_ego.blocks)


def _with_radar_turned(geometry: SensorGeometry, turn: FloatArray) -> SensorGeometry:
    rotation = geometry.radar_pose.rotation @ turn
    return replace(geometry, radar_pose=replace(geometry.radar_pose, rotation=rotation))


def _fitted(
    tracks: Sequence[BoxTrack],
    returns: MovingReturns,
    radar_in_camera: Transform,
    has_elevation: bool,
    prior: Prior,
    free: NDArray[np.bool_],
) -> RotationFit:
    """Fit, pair anew by what was fitted, and so on until nothing changes."""
    # How wrong the time may be, s: at first, and once it was fitted.
    first_spare, spare = (0.15, 0.05) if free[3] else (0.0, 0.0)
    late = float(prior.centre[3])
    paired = partial(pair_by_range, tracks, returns, radar_in_camera)
    pairs = _enough(paired(late, first_spare))
    parameters = prior.centre + np.array([scan_yaw(pairs, late), 0.0, 0.0, 0.0])
    spread = Spread(up=Spread().up if has_elevation else np.inf)
    # The yaw is known to a degree only, and comes first.
    first = free & np.array([True, False, False, True])
    fit: RotationFit | None = None
    for turn in range(_MOST_ROUNDS):
        if turn:
            pairs = paired(parameters[3], spare)
        chosen = pairs_on_paths(pairs, parameters, 1.5 * spread.left)
        if turn > 1:
            chosen = without_strangers(chosen, parameters, spread.left)
        _enough(chosen)
        fit = fit_rotation(chosen, parameters, prior, free if turn else first, spread)
        moved = np.abs(fit.parameters - parameters)
        parameters, spread = fit.parameters, fit.spread
        if turn > 1 and (moved < _SETTLED).all():
            break
    assert fit is not None
    return fit


def _enough(pairs: Pairs) -> Pairs:
    """Return the pairs, if they are enough to calibrate by.

    :raises ExtrinsicsError: if they are not
    """
    count = int(pairs.returned.max()) + 1 if len(pairs) else 0
    moments = len(np.unique(np.floor(pairs.times / 2.0)))
    if count < _FEWEST_RETURNS or moments < _FEWEST_BLOCKS:
        raise ExtrinsicsError(
            f'only {count} returns of moving people in {2 * moments} s with people in the picture '
            f'(it takes {_FEWEST_RETURNS} in {2 * _FEWEST_BLOCKS} s); {_WALK}'
        )
    return pairs


def _halves(fit: RotationFit, by_ego: ClockOffset | None) -> FloatArray:
    """Return halves (4,) of 95 % intervals; NaN for what was held."""
    systematic = _SYSTEMATIC.copy()
    systematic[1] = max(systematic[1], _SYSTEMATIC_HEIGHT / fit.distance)
    factor = float(student.ppf(0.975, max(min(fit.blocks, fit.people) - 1, 2)))
    halves = np.hypot(factor * fit.deviations, 2.0 * systematic)
    if by_ego is not None:
        halves[3] = float(student.ppf(0.975, by_ego.blocks - 1)) * np.hypot(
            by_ego.deviation, _SYSTEMATIC_BY_EGO
        )
    return np.asarray(halves)


def _notes(halves: FloatArray, has_elevation: bool) -> tuple[str, ...]:
    unknown = [name for name, half in zip(NAMES, halves, strict=True) if not np.isfinite(half)]
    reasons = {
        'pitch': 'people stayed at one height in view',
        'roll': 'people stayed at one height in view, or in the middle of it',
        'time': 'nobody moved fast enough across the view, and no odometry shakes it',
    }
    if not has_elevation:
        reasons['pitch'] = 'this radar measures no elevation'
    return tuple(
        f'{name} is not observable ({reasons[name]}): the start was kept' for name in unknown
    )
