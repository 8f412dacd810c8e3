"""What the flight's encoders make of whole recordings, kept on disk for training.

A folder per flight: ``camera_<level>.npy`` (N, 64, 30, 40) and ``radar_<level>.npy``
(M, 20, 30, 40), float16, one row per unit in the order of the recording; ``scan_<level>.npy``,
the radar's own grids (16, 30, 40) of every fifth unit; ``units.npz`` with stamps and the truth,
and ``index.json``. Arrays are read as memory maps: a training needs a few of the 150 kB rows at
a time, all of them take some gigabytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.bench import flight_subject
from mmedge_lab.training import TrainingError
from mmedge_lab.training.checkpoint import read_index, whole_folder
from mmedge_lab.training.picture_set import describe_flight
from mmedge_lab.training.window_truth import WindowTruth, window_truth
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, ModalityConfiguration, Unit
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.feature_grid import CAMERA_GRID, RADAR_GRID
from mmedge_ros.encoding.unit_encoder import CameraEncoder, RadarEncoder, UnitEncoder
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import EgoMotion, carried
from mmedge_ros.geometry.sensor_poses import BASE_FRAME, SensorGeometry, resolve_geometry
from mmedge_ros.geometry.transforms import TransformTree
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.replay.recorded_truth import GROUND_TRUTH
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image
from mmedge_ros.sensing.radar.filter import RadarLimits
from mmedge_ros.tracking.radar_grid import RADAR_INPUT, radar_fusion_input

SHAPES = {CAMERA: CAMERA_GRID, RADAR: RADAR_INPUT}
SCAN = 'scan'
SCAN_STEP = 5
_LAYOUT = 1  # raise it when the files change
_INDEX, _UNITS = 'index.json', 'units.npz'

Grid = NDArray[np.float16]


# Returns what fusion takes of a unit, and its own grid: of a camera both are the same
# (64, 30, 40), of a radar (20, 30, 40) and (16, 30, 40). Raises SensingError where the message
# cannot be decoded, EncodingError where the network fails on it.
RecordingEncoder = Callable[[Unit], tuple[Grid, Grid]]
OpenEncoders = Callable[[Recording], Mapping[tuple[str, str], RecordingEncoder]]


class UnitTimes(NamedTuple):
    """The units of one modality: stamps and available times (N,) in ns, and which are usable."""

    stamps_ns: NDArray[np.int64]
    available_ns: NDArray[np.int64]
    usable: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CachedFlight:
    """One flight: ``grids`` by modality (or SCAN) and level, ``units`` by modality, the truth.

    ``size`` is width and height of the pictures; ``key`` is a digest of what all of it depends
    on. ``seed`` is that of the simulated flight, else the recording itself.
    """

    name: str
    size: tuple[int, int]
    grids: dict[tuple[str, str], Grid]
    units: dict[str, UnitTimes]
    truth: WindowTruth
    key: str = ''
    seed: str = ''

    def levels(self, modality: str) -> tuple[str, ...]:
        """Return the levels of a modality."""
        return tuple(level for kind, level in self.grids if kind == modality)


def flights_digest(flights: Sequence[CachedFlight]) -> str:
    """Return the digest of what trainings on some flights depend on."""
    return hashlib.sha256(json.dumps([flight.key for flight in flights]).encode()).hexdigest()


def write_flight(
    flight: Path,
    folder: Path,
    key: str,
    open_encoders: OpenEncoders,
    stride_ns: int,
) -> None:
    """Encode a flight into ``folder``, unless that holds it already.

    It is written beside its place and renamed when it is whole.

    :raises TrainingError: if the flight has no ground truth or no pictures
    :raises ReplayError: if it cannot be read
    :raises OSError: if the folder cannot be written
    """
    if read_index(folder / _INDEX).get('key') == key:
        return
    with whole_folder(folder) as part, Recording(flight) as recording:
        truth = recorded_truth(recording)
        units: dict[str, list[Unit]] = {CAMERA: [], RADAR: []}
        for unit in recording.units():
            units[unit.modality].append(unit)
        size = _picture_size(units[CAMERA], flight)
        usable = {kind: np.ones(len(of_kind), np.bool_) for kind, of_kind in units.items()}
        for (kind, level), encode in open_encoders(recording).items():
            _write_level(part, kind, level, units[kind], encode, usable[kind])
        instants = [*(u.stamp_ns for u in units[CAMERA]), *_window_ends(units, stride_ns)]
        known = window_truth(truth, instants)
        times = {
            f'{kind}_{name}': column
            for kind, of_kind in units.items()
            for name, column in _times(of_kind, usable[kind])._asdict().items()
        }
        arrays = {
            'instants_ns': known.instants_ns,
            'ends': known.ends,
            'rows': known.rows,
            **times,
        }
        np.savez(part / _UNITS, **arrays)
        subject = flight_subject(flight)
        index = {'key': key, 'name': subject.name, 'size': list(size), 'seed': subject.seed}
        (part / _INDEX).write_text(json.dumps(index))


def read_flight(folder: Path) -> CachedFlight:
    """Open a cached flight; grids stay on disk.

    :raises TrainingError: if it is damaged
    """
    try:
        index = json.loads((folder / _INDEX).read_text())
        with np.load(folder / _UNITS) as content:
            arrays = {name: content[name] for name in content.files}
        units = {
            kind: UnitTimes(*(arrays[f'{kind}_{field}'] for field in UnitTimes._fields))
            for kind in SHAPES
        }
        truth = WindowTruth(arrays['instants_ns'], arrays['ends'], arrays['rows'])
        grids: dict[tuple[str, str], Grid] = {}
        for path in sorted(folder.glob('*.npy')):
            kind, _, level = path.stem.partition('_')
            grid = np.load(path, mmap_mode='r')
            count, step = len(units[RADAR if kind == SCAN else kind].stamps_ns), SCAN_STEP
            shape = SHAPES.get(kind, RADAR_GRID)
            if grid.shape != (-(-count // step) if kind == SCAN else count, *shape):
                raise ValueError(f'{path.name} has the shape {grid.shape}')
            grids[kind, level] = grid
        width, height = map(int, index['size'])
        name, key = str(index['name']), str(index['key'])
        seed = str(index.get('seed', name))
        return CachedFlight(name, (width, height), grids, units, truth, key, seed)
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as err:
        raise TrainingError(
            f'{folder} cannot be used ({str(err)[:200]}); remove it and run the same command again'
        ) from err


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


def _write_level(
    folder: Path,
    kind: str,
    level: str,
    units: Sequence[Unit],
    encode: RecordingEncoder,
    usable: NDArray[np.bool_],
) -> None:
    """Write one row per unit; units that cannot be encoded are marked and left zero.

    Written as a stream: a memory map would end the process where the disk is full.
    """
    shape = SHAPES[kind]
    empty = np.zeros(shape, np.float16), np.zeros(RADAR_GRID, np.float16)
    with ExitStack() as files:
        file = files.enter_context((folder / f'{kind}_{level}.npy').open('wb'))
        _write_header(file, len(units), shape)
        own = None
        if kind == RADAR:
            own = files.enter_context((folder / f'{SCAN}_{level}.npy').open('wb'))
            _write_header(own, -(-len(units) // SCAN_STEP), RADAR_GRID)
        for place, unit in enumerate(units):
            try:
                grids = encode(unit)
            except (SensingError, EncodingError):
                usable[place] = False
                grids = empty
            _write_row(file, grids[0], shape)
            if own is not None and place % SCAN_STEP == 0:
                _write_row(own, grids[1], RADAR_GRID)


def _write_header(file: BinaryIO, rows: int, shape: tuple[int, ...]) -> None:
    header = {'descr': '<f2', 'fortran_order': False, 'shape': (rows, *shape)}
    np.lib.format.write_array_header_1_0(file, header)


def _write_row(file: BinaryIO, grid: Grid, shape: tuple[int, ...]) -> None:
    if grid.shape != shape:
        raise TrainingError(
            f'an encoder gives a grid of the shape {grid.shape}, not {shape}; encoders and '
            'training must be of one version'
        )
    file.write(np.ascontiguousarray(grid, '<f2').tobytes())


def _window_ends(units: Mapping[str, Sequence[Unit]], stride_ns: int) -> list[int]:
    """Return the window ends on the global grid while units arrive."""
    times = [unit.available_ns for unit in chain(*units.values())]
    if not times:
        return []
    first, last = -(-min(times) // stride_ns), -(-max(times) // stride_ns)
    if last - first > 3600 * NS_PER_S // stride_ns:
        raise TrainingError('a recording is longer than an hour, or has one wrong time; cut it')
    return [k * stride_ns for k in range(first, last + 1)]


def _times(units: Sequence[Unit], usable: NDArray[np.bool_]) -> UnitTimes:
    return UnitTimes(
        np.array([u.stamp_ns for u in units], np.int64),
        np.array([u.available_ns for u in units], np.int64),
        usable,
    )


def _picture_size(units: Sequence[Unit], flight: Path) -> tuple[int, int]:
    for unit in units:
        try:
            height, width = decode_image(unit.payload).shape[:2]
        except SensingError:
            continue
        return width, height
    raise TrainingError(f'{flight}: it has no picture that can be read; leave it out')


# Boxes are not needed here: a high threshold leaves hardly one to sort out.
_NO_BOXES = DetectorParameters(score_threshold=1.0)
_LARGEST_FLOAT16 = 65504.0


class RecordingGeometry:
    """Sensor poses of a recording at any instant, with odometry where there is any."""

    def __init__(self, recording: Recording, frames: Mapping[str, str]) -> None:
        tree = TransformTree()
        for transform in recording.transforms:
            tree.add(transform.parent, transform.child, transform.transform)
        self._ego = recording.ego_motion() or EgoMotion()
        self._still = resolve_geometry(
            tree,
            recording.camera,
            frames.get(CAMERA, ''),
            frames.get(RADAR, ''),
            self._ego.base_frame or BASE_FRAME,
        )

    def at(self, stamp_ns: int) -> SensorGeometry:
        """Return the poses at an instant."""
        state = self._ego.nearest(stamp_ns)
        return self._still if state is None else carried(self._still, state, self._ego.frame_id)


def sensor_frames(recording: Recording) -> dict[str, str]:
    """Return the frame of each modality's sensor, as its first unit names it."""
    frames: dict[str, str] = {}
    for unit in recording.units():
        frames.setdefault(unit.modality, unit.frame_id)
        if len(frames) == len(recording.modalities):
            break
    return frames


def bundle_encoders(
    bundle: Path, levels: Sequence[str], recording: Recording
) -> dict[tuple[str, str], RecordingEncoder]:
    """Return an encoder for each of some levels of a bundle, for the units of one recording.

    :param levels: those wanted; () for all
    :raises EncodingError: if the bundle cannot be used
    """
    encoders = _opened(bundle)
    geometry = RecordingGeometry(recording, sensor_frames(recording))
    made: dict[tuple[str, str], RecordingEncoder] = {}
    for kind, encode in ((CAMERA, _camera_grids), (RADAR, _radar_grids)):
        for level in levels or encoders[kind].levels:
            configuration = ModalityConfiguration(kind, 0.0, level)
            made[kind, level] = partial(encode, encoders[kind], configuration, geometry)
    return made


def cache_flight(
    flight: Path,
    folder: Path,
    bundle: Path,
    made_from: Mapping[str, Any],
    stride_ns: int,
    levels: Sequence[str],
    on_share: OnShare,
) -> None:
    """Encode a flight with levels of a bundle, unless that was done before.

    :param made_from: what it depends on beside the flight: plain values
    :param levels: () for all
    """
    made = {**describe_flight(flight), 'levels': list(levels)}
    content = json.dumps([_LAYOUT, made, made_from, stride_ns], sort_keys=True)
    key = hashlib.sha256(content.encode()).hexdigest()
    write_flight(flight, folder, key, partial(bundle_encoders, bundle, levels), stride_ns)
    on_share(1.0)


@lru_cache(maxsize=1)
def _opened(bundle: Path) -> dict[str, UnitEncoder]:
    camera = CameraEncoder.from_path(bundle, _NO_BOXES)
    radar = RadarEncoder.from_path(bundle, RadarLimits())
    return {CAMERA: camera, RADAR: radar}


def _camera_grids(
    encoder: UnitEncoder,
    configuration: ModalityConfiguration,
    geometry: RecordingGeometry,  # noqa: ARG001 - a picture is what it is wherever it was taken
    unit: Unit,
) -> tuple[Grid, Grid]:
    grid = encoder.encode(unit, configuration, 0).grid
    return grid, grid


def _radar_grids(
    encoder: UnitEncoder,
    configuration: ModalityConfiguration,
    geometry: RecordingGeometry,
    unit: Unit,
) -> tuple[Grid, Grid]:
    scan = encoder.encode(unit, configuration, 0)
    try:
        fused = radar_fusion_input(scan, geometry.at(unit.stamp_ns))
    except GeometryError as err:
        raise EncodingError(str(err)) from err
    clipped = np.clip(fused, -_LARGEST_FLOAT16, _LARGEST_FLOAT16)
    return clipped.astype(np.float16), scan.grid
