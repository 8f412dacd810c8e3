"""What the flight's encoders make of whole flights, kept on disk for training.

The arrays of a flight are ``camera_<level>`` (N, 64, 30, 40) and ``radar_<level>``
(M, 20, 30, 40), float16, one row per unit in the order of the recording; ``scan_<level>``, the
radar's own grids (16, 30, 40) of every fifth unit; stamps of the units, and the truth. They are
read as memory maps: a training needs a few of the 150 kB rows at a time, all of them take some
gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.bench import flight_subject
from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_lab.judging.judged_flight import encoded_with_truth
from mmedge_lab.policies.scheduled_replay import StoredFeatures
from mmedge_lab.training import TrainingError
from mmedge_lab.training.flight_works import Arrays, read_arrays
from mmedge_lab.training.picture_sources import CLASSES
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.feature_grid import CAMERA_GRID, RADAR_GRID
from mmedge_ros.encoding.unit_encoder import CameraEncoder, RadarEncoder, UnitEncoder
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import EgoMotion, carried
from mmedge_ros.geometry.sensor_poses import BASE_FRAME, SensorGeometry, resolve_geometry
from mmedge_ros.geometry.transforms import TransformTree
from mmedge_ros.replay.ground_truth import GroundTruth, TrueFrame
from mmedge_ros.replay.recorded_truth import GROUND_TRUTH
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing.radar.filter import RadarLimits
from mmedge_ros.tracking.radar_grid import RADAR_INPUT, radar_fusion_input

FloatRows = NDArray[np.float32]
SHAPES = {CAMERA: CAMERA_GRID, RADAR: RADAR_INPUT}
SCAN = 'scan'
SCAN_STEP = 5
# Boxes are not needed here: a high threshold leaves hardly one to sort out.
_NO_BOXES = DetectorParameters(score_threshold=1.0)
_LARGEST_FLOAT16 = 65504.0

Grid = NDArray[np.float16]


class WindowTruth:
    """Objects in the picture by instant.

    ``rows`` (R, 7) float32 are place in CLASSES, x0, y0, x1, y1 (px), range (m, NaN where it is
    not known) and visibility; ``ends`` (T,) where the rows of each of the ``instants_ns`` (T,)
    end.
    """

    def __init__(
        self, instants_ns: NDArray[np.int64], ends: NDArray[np.int64], rows: FloatRows
    ) -> None:
        self.instants_ns = instants_ns
        self.ends = ends
        self.rows = rows
        self._places = {int(stamp): place for place, stamp in enumerate(instants_ns.tolist())}

    def __contains__(self, stamp_ns: int) -> bool:
        return stamp_ns in self._places

    def at(self, stamp_ns: int) -> TrueFrame:
        """Return the objects at one of the instants; where in the world they are is left out.

        :raises KeyError: if nothing is known of it
        """
        place = self._places[stamp_ns]
        begin = int(self.ends[place - 1]) if place else 0
        return true_frame(self.rows[begin : int(self.ends[place])])


def true_frame(rows: FloatRows) -> TrueFrame:
    """Return the objects of some rows of `WindowTruth`."""
    values, nowhere = rows.astype(np.float64), np.zeros((len(rows), 3))
    return TrueFrame(
        np.arange(len(rows)),
        np.array(CLASSES)[rows[:, 0].astype(int)],
        values[:, 1:5],
        values[:, 6],
        nowhere,
        nowhere,
        values[:, 5],
        np.ones(len(rows), np.bool_),
        np.zeros(len(rows)),
    )


def window_truth(truth: GroundTruth, instants_ns: Sequence[int]) -> WindowTruth:
    """Look the truth up at instants; those without a known truth are left out."""
    known = {stamp_ns: truth.frame_at(stamp_ns) for stamp_ns in sorted(set(instants_ns))}
    tables = {stamp_ns: _rows(frame) for stamp_ns, frame in known.items() if frame is not None}
    return WindowTruth(
        np.array([*tables], np.int64),
        np.cumsum([len(rows) for rows in tables.values()], dtype=np.int64),
        np.concatenate([np.zeros((0, 7), np.float32), *tables.values()]),
    )


def _rows(frame: TrueFrame) -> FloatRows:
    known = np.isin(frame.labels, CLASSES) & np.isfinite(frame.boxes).all(axis=1)
    chosen = frame.select(known)
    classes = np.array([CLASSES.index(str(label)) for label in chosen.labels], np.float64)
    columns = (classes, *chosen.boxes.T, chosen.ranges, chosen.visibility)
    return np.stack(columns, axis=1).astype(np.float32)


class UnitTimes(NamedTuple):
    """The units of one modality: stamps and available times (N,) in ns, and which are usable."""

    stamps_ns: NDArray[np.int64]
    available_ns: NDArray[np.int64]
    usable: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CachedFlight:
    """One flight: ``grids`` by modality (or SCAN) and level, ``units`` by modality, the truth.

    ``size`` is width and height of the pictures; ``seed`` is that of the simulated flight, else
    the recording itself.
    """

    name: str
    size: tuple[int, int]
    grids: dict[tuple[str, str], Grid]
    units: dict[str, UnitTimes]
    truth: WindowTruth
    seed: str = ''

    def levels(self, modality: str) -> tuple[str, ...]:
        """Return the levels of a modality."""
        return tuple(level for kind, level in self.grids if kind == modality)


def fusion_arrays(
    bundle: Path,
    levels: Sequence[Sequence[str]],
    stride_ns: int,
    path: Path,
    number: int,
    on_share: OnShare,
) -> Arrays:
    """Encode a flight with levels of a bundle.

    :param levels: those of camera and radar that one flight after another is encoded with
    :param stride_ns: distance of window ends, whose truth is kept beside that of pictures
    :raises EvaluationError: if it lacks a sensor or the truth
    :raises ReplayError: if it cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    chosen = levels[number % len(levels)]
    encoders: dict[str, UnitEncoder] = {
        CAMERA: CameraEncoder.from_path(bundle, _NO_BOXES),
        RADAR: RadarEncoder.from_path(bundle, RadarLimits()),
    }
    with Recording(path) as recording:
        wanted = dict.fromkeys(encoders, chosen)
        flight = encoded_with_truth(recording, encoders, wanted, on_share)
        geometry = recording_geometry(recording)
    assert flight.truth is not None  # see `encoded_with_truth`
    units = {
        kind: [e for e in flight.events if isinstance(e, Unit) and e.modality == kind]
        for kind in SHAPES
    }
    instants = [unit.stamp_ns for unit in units[CAMERA]]
    truth = window_truth(flight.truth, [*instants, *_window_ends(flight, stride_ns)])
    subject = flight_subject(path)
    arrays: dict[str, NDArray[np.generic]] = {
        'name': np.array(subject.name),
        'seed': np.array(subject.seed),
        'instants_ns': truth.instants_ns,
        'ends': truth.ends,
        'rows': truth.rows,
    }
    stored = StoredFeatures(flight)
    for kind, of_kind in units.items():
        usable = np.ones(len(of_kind), np.bool_)
        for level in chosen:
            part = ModalityConfiguration(kind, 0.0, level)
            made = [stored.of((kind, unit.sequence), part) for unit in of_kind]
            grids = [_fusion_input(unit, geometry) for unit in made]
            usable &= [grid is not None for grid in grids]
            empty = np.zeros(SHAPES[kind], np.float16)
            rows = [empty if grid is None else grid for grid in grids]
            arrays[f'{kind}_{level}'] = np.array(rows, np.float16).reshape(-1, *SHAPES[kind])
            if kind == RADAR:
                none = np.zeros(RADAR_GRID, np.float16)
                own = [none if unit is None else unit.grid for unit in made[::SCAN_STEP]]
                arrays[f'{SCAN}_{level}'] = np.array(own, np.float16).reshape(-1, *RADAR_GRID)
            else:
                sizes = [unit.image_size for unit in made if unit is not None]
                if not sizes:
                    raise TrainingError(
                        f'{path}: it has no picture that can be read; leave it out'
                    )
                arrays['size'] = np.array(sizes[0])
        times = UnitTimes(
            np.array([unit.stamp_ns for unit in of_kind], np.int64),
            np.array([unit.available_ns for unit in of_kind], np.int64),
            usable,
        )
        arrays |= {f'{name}_{kind}': column for name, column in times._asdict().items()}
    return arrays


def read_flight(folder: Path) -> CachedFlight:
    """Open a cached flight; grids stay on disk.

    :raises TrainingError: if it is damaged
    """
    return cached_flight(read_arrays(folder))


def cached_flight(arrays: Arrays) -> CachedFlight:
    """Return the flight of which `fusion_arrays` made arrays."""
    grids = {}
    for name, values in sorted(arrays.items()):
        kind, _, level = name.partition('_')
        if kind in (*SHAPES, SCAN):
            grids[kind, level] = values
    width, height = arrays['size'].tolist()
    return CachedFlight(
        str(arrays['name']),
        (width, height),
        grids,
        {
            kind: UnitTimes(*(arrays[f'{name}_{kind}'] for name in UnitTimes._fields))
            for kind in SHAPES
        },
        WindowTruth(arrays['instants_ns'], arrays['ends'], arrays['rows']),
        str(arrays['seed']),
    )


def recorded_truth(recording: Recording) -> GroundTruth:
    """Return the ground truth of a recording.

    :raises TrainingError: if there is none
    """
    truth = recording.truth()
    if truth is None or not truth.scenes:
        raise _no_truth(recording.bag.path, 'none that can be used' if truth else 'none')
    return truth


def require_truth(flights: Sequence[Path]) -> None:
    """Make sure that flights have a ground truth, before anything is made of them.

    :raises TrainingError: if one has none
    :raises ReplayError: if one cannot be read
    """
    for flight in flights:
        with Recording(flight) as recording:
            if not any(t.msgtype == GROUND_TRUTH and t.count for t in recording.bag.topics):
                raise _no_truth(flight, 'none')


def _no_truth(flight: Path, what: str) -> TrainingError:
    return TrainingError(
        f'{flight}: ground truth is needed, and this recording has {what}; use flights made by '
        '`mmedge simulate`'
    )


def _fusion_input(
    unit: UnitFeatures | None, geometry: Callable[[int], SensorGeometry]
) -> Grid | None:
    """Return what fusion takes of a unit, None where it cannot be used."""
    if unit is None or unit.modality == CAMERA:
        return None if unit is None else unit.grid
    try:
        fused = radar_fusion_input(unit, geometry(unit.stamp_ns))
    except GeometryError:
        return None
    return np.clip(fused, -_LARGEST_FLOAT16, _LARGEST_FLOAT16).astype(np.float16)


def _window_ends(flight: EncodedFlight, stride_ns: int) -> range:
    """Return the window ends on the global grid while units arrive.

    :raises TrainingError: if that is longer than an hour
    """
    times = [event.available_ns for event in flight.events if isinstance(event, Unit)]
    first, last = -(-min(times) // stride_ns), -(-max(times) // stride_ns)
    if last - first > 3600 * NS_PER_S // stride_ns:
        raise TrainingError('a recording is longer than an hour, or has one wrong time; cut it')
    return range(first * stride_ns, last * stride_ns + 1, stride_ns)


def recording_geometry(recording: Recording) -> Callable[[int], SensorGeometry]:
    """Return what gives the sensors' poses at an instant (ns), by odometry where there is any."""
    frames: dict[str, str] = {}
    for unit in recording.units():
        frames.setdefault(unit.modality, unit.frame_id)
        if len(frames) == len(recording.modalities):
            break
    ego = recording.ego_motion() or EgoMotion()
    still = resolve_geometry(
        TransformTree(recording.transforms),
        recording.camera,
        frames.get(CAMERA, ''),
        frames.get(RADAR, ''),
        ego.base_frame or BASE_FRAME,
    )

    def at(stamp_ns: int) -> SensorGeometry:
        state = ego.nearest(stamp_ns)
        return still if state is None else carried(still, state, ego.frame_id)

    return at
