"""What was wrong with the sensors of a recording, judged by the units that could be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, UnitFeatures
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.projection import CameraModel

# A sensor is silent when it misses this many of its own periods, and at least one window.
_MISSED_PERIODS = 3
_MOST_NAMES = 4
# Before scans are judged by what they hold.
_ENOUGH_SCANS, _ENOUGH_RETURNS = 20, 200
# Shares of returns behind, and to either side.
_FEW, _SOME = 0.005, 0.1
_NONE = np.zeros((0, 2), np.float32)


def input_problems(
    record: RunRecord, modalities: Iterable[str], first_ns: int, last_ns: int
) -> list[str]:
    """Say in words where frames, picture sizes and the flow of units are not as they should be.

    :param modalities: those the recording has
    :param first_ns: when the first unit of the recording became available
    :param last_ns: when the last one did
    """
    problems: list[str] = []
    for modality in modalities:
        units = [unit for unit in record.features if unit.modality == modality]
        if not units:
            problems.append(f'{modality}: not one of its messages could be used')
            continue
        problems += _frame_problems(modality, units)
        if modality == CAMERA and record.camera is not None:
            problems += _size_problems(units, record.camera)
        if modality == RADAR:
            problems += _scan_problems(units)
        problems += _silence(modality, units, record.window, first_ns, last_ns)
    return problems


def _frame_problems(modality: str, units: Sequence[UnitFeatures]) -> list[str]:
    names = sorted({unit.frame_id for unit in units})
    if names == ['']:
        return [
            f'{modality}: its messages name no frame (header.frame_id is empty): assumed at the '
            'origin, looking forward'
        ]
    if len(names) > 1:
        listed = ', '.join(repr(name) for name in names[:_MOST_NAMES])
        more = ', ...' if len(names) > _MOST_NAMES else ''
        return [
            f'{modality}: its messages name {len(names)} frames ({listed}{more}); for each the '
            'pose of the last one named was used'
        ]
    return []


def _size_problems(units: Sequence[UnitFeatures], camera: CameraModel) -> list[str]:
    sizes = Counter(unit.image_size for unit in units)
    return [
        f'{CAMERA}: {count} of {len(units)} pictures are {width} x {height} px, but the '
        f'calibration is for {camera.width} x {camera.height} px: what is seen in them is '
        'placed wrongly in space; give the right one with --calibration'
        for (width, height), count in sizes.most_common(_MOST_NAMES)
        if (width, height) != (camera.width, camera.height) and width and height
    ]


def _scan_problems(units: Sequence[UnitFeatures]) -> list[str]:
    """Report scans that cannot be what a radar sees."""
    sizes = [len(unit.returns) for unit in units]
    problems = []
    if len(units) >= _ENOUGH_SCANS and 0 < max(sizes) == 1:
        problems.append(
            f'{RADAR}: no scan has more than one return: let the driver publish a whole scan in '
            'one message, and the board all peaks (peak grouping off, a lower CFAR threshold)'
        )
    places = np.concatenate(
        [unit.returns[:, :2] for unit in units if len(unit.returns)] or [_NONE]
    )
    # Nothing is seen behind a radar: of the axis that points forward all are positive.
    if len(places) < _ENOUGH_RETURNS:
        return problems
    sideways, forward = np.mean(places < 0.0, axis=0)
    if forward < _FEW and _SOME < sideways < 1.0 - _SOME:
        problems.append(
            f'{RADAR}: its points seem to be in the axes of TI (x to the right, y forward); let '
            'the driver turn them (x forward, y to the left), or turn its frame by 90 degrees in '
            'the transforms'
        )
    return problems


def _silence(
    modality: str, units: Sequence[UnitFeatures], window: float, first_ns: int, last_ns: int
) -> list[str]:
    """Report the longest time without a unit, where it outlasts a window."""
    instants = sorted(unit.available_ns for unit in units)
    period = median([b - a for a, b in pairwise(instants)] or [0])
    limit_ns = max(window * NS_PER_S, _MISSED_PERIODS * period)
    gaps = [(b - a, a) for a, b in pairwise([first_ns, *instants, last_ns]) if b - a > limit_ns]
    if not gaps:
        return []
    length_ns, begin_ns = max(gaps, key=lambda gap: gap[0])
    begin, length = (begin_ns - first_ns) / NS_PER_S, length_ns / NS_PER_S
    where = f'for {length:.1f} s from {begin:.1f} s on'
    if begin_ns + length_ns >= last_ns:
        where = f'in the last {length:.1f} s'
    others = f'; the longest of {len(gaps)} such gaps' if len(gaps) > 1 else ''
    return [f'{modality}: nothing usable {where}{others}']
