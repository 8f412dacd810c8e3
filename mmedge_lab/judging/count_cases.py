"""Flights with what was perceived of them and who was really in view, kept for counting.

A flight is replayed once, with all labels, and its memory is built, as `mmedge memory build` does.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_under_test import flight_digest, software_digest
from mmedge_lab.judging.memory_truth import NOBODY, owner_of
from mmedge_lab.judging.simulated_flight import simulated_flight
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.data_types import NS_PER_S, Decision
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.memory.build import build_memory
from mmedge_ros.memory.moment import Vectors, ViewKind
from mmedge_ros.memory.store import MemoryReader, memory_folder
from mmedge_ros.memory.views import LEAST_HEIGHT
from mmedge_ros.questions.observations import (
    DronePath,
    Observations,
    ObservedTrack,
    observations_of,
)
from mmedge_ros.records.ground_truth import PERSON, GroundTruth
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.report.report_files import (
    arrays_bytes,
    kept_content,
    read_arrays,
    write_files,
)
from mmedge_ros.report.truth_matching import MINIMUM_VISIBILITY


@dataclass(frozen=True)
class CountTask:
    """A flight to observe with a bundle; ``profile`` '': service times are measured."""

    name: str
    flight: Path
    bundle: Path
    profile: str
    folder: Path
    digest: str

    @property
    def link(self) -> Path:
        """Where the flight seems to lie, so that its memory lies in the folder of results."""
        return self.folder / 'flights' / self.name / self.flight.name

    def pending(self) -> tuple[str, ...]:
        """Return what has no result yet."""
        return () if self.arrays() is not None else (self.name,)

    def arrays(self) -> dict[str, NDArray[Any]] | None:
        """Return what was kept of this flight, bundle and software; None: nothing yet."""
        content = kept_content(self._file)
        return None if content is None else read_arrays(content, self.digest)

    def keep(self, **arrays: NDArray[Any]) -> None:
        """Write what was found.

        :raises ReportError: if that is not possible
        """
        write_files(self._file.parent, {self._file.name: arrays_bytes(self.digest, **arrays)})

    @property
    def _file(self) -> Path:
        return self.link.parent / 'observed.npz'


def count_tasks(
    flights: Sequence[tuple[str, Path]], bundle: Path, profile: str, folder: Path
) -> list[CountTask]:
    """Return the tasks of flights, given by name.

    :raises EncodingError: if a file cannot be read
    """
    made = sha256_of(bundle / MANIFEST) + software_digest()
    made += sha256_of(Path(profile)) if profile else ''
    return [
        CountTask(name, flight, bundle, profile, folder, f'{made} {flight_digest(flight)}')
        for name, flight in flights
    ]


@dataclass(frozen=True, eq=False)
class CountedFlight:
    """A flight as it was perceived and as it was.

    ``owners`` says which person a track followed most, by its id; `NOBODY` where none or another
    object. ``sights`` (N, 2) are stamps (ns) and the people in view then, ``places`` (N, 3) m
    where they were; ``stamps_ns`` all at which that is known.
    """

    name: str
    seed: str
    light: str
    distance: str
    observations: Observations
    owners: Mapping[int, int]
    sights: NDArray[np.int64]
    places: NDArray[np.float64]
    stamps_ns: NDArray[np.int64]


def observe(task: CountTask, on_share: OnShare) -> None:
    """Replay a flight, build its memory and keep what was perceived and what is true.

    :raises EvaluationError: if it is no simulated flight with truth
    """
    made = simulated_flight(task.flight)
    task.link.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        task.link.symlink_to(task.flight.absolute())
    built = build_memory(
        str(task.link), str(task.bundle), lambda share, _: on_share(share), profile=task.profile
    )
    record = built.record
    if record is None or record.truth is None or not record.truth.scenes:
        raise EvaluationError(f'{task.flight} has no ground truth; name simulated flights')
    with MemoryReader(memory_folder(task.link)) as memory:
        table = memory.table()
    is_track = table.integers['kind'] == ViewKind.TRACK
    sights, places = _sights(record.truth)
    stamps = np.array([decision.state_ns for decision in record.decisions], np.int64)
    task.keep(
        **_arrays_of(observations_of(record.decisions, _drone(record, stamps))),
        owners=_owners(record.decisions, record.truth),
        look_tracks=table.integers['track'][is_track],
        look_ids=table.integers['id'][is_track],
        looks=table.taps(is_track),
        sights=sights,
        places=places,
        scene_stamps=np.array(record.truth.stamps_ns, np.int64),
        light=np.array(record.truth.scenes[0].light),
        distance=np.array(record.truth.scenes[0].distance),
        seed=np.array(str(made.seed)),
    )


def read_observed(task: CountTask) -> CountedFlight:
    """Return what was found of a flight.

    :raises EvaluationError: if it was written and cannot be read
    """
    arrays = task.arrays()
    if arrays is None:
        raise EvaluationError(
            f'flight {task.name}: what was observed was written and cannot be read; look for a '
            'full or failing disk and run the same command again'
        )
    return CountedFlight(
        task.name,
        str(arrays['seed']),
        str(arrays['light']),
        str(arrays['distance']),
        _observations(arrays),
        {int(number): int(owner) for number, owner in arrays['owners']},
        arrays['sights'],
        arrays['places'],
        arrays['scene_stamps'],
    )


def true_observations(flight: CountedFlight) -> Observations:
    """Return what would have been perceived by an eye that neither misses nor confuses anybody."""
    seen, stamps = flight.observations, flight.stamps_ns
    tracks = []
    for person in np.unique(flight.sights[:, 1]):
        rows = flight.sights[:, 1] == person
        instants, places = flight.sights[rows, 0], flight.places[rows]
        count = len(instants)
        times = (instants - instants[0]) / NS_PER_S
        moved = np.gradient(places, times, axis=0) if count > 1 else np.zeros_like(places)
        tracks.append(
            ObservedTrack(
                int(person),
                PERSON,
                instants,
                places,
                moved,
                np.zeros(count),
                np.ones(count, bool),
            )
        )
    return Observations(
        tuple(tracks), stamps, np.ones(len(stamps), bool), seen.frame_id, seen.drone
    )


def _sights(truth: GroundTruth) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    sights, places = [], []
    for scene in truth.scenes:
        for item in scene.objects:
            if item.label != PERSON or item.box is None or item.visibility < MINIMUM_VISIBILITY:
                continue
            if item.box.height >= LEAST_HEIGHT:
                sights.append((scene.stamp_ns, item.id))
                places.append(item.position)
    return np.array(sights, np.int64).reshape(-1, 2), np.array(places, float).reshape(-1, 3)


def _owners(decisions: Sequence[Decision], truth: GroundTruth) -> NDArray[np.int64]:
    """Return ids of tracks, and whom each lay on most often (T, 2)."""
    met: dict[int, Counter[int]] = defaultdict(Counter)
    for decision in decisions:
        frame = truth.frame_at(decision.state_ns)
        for track in decision.tracks:
            met[track.id][NOBODY if track.box is None else owner_of(frame, track.box)] += (
                track.box is not None
            )
    people = {item.id for scene in truth.scenes for item in scene.objects if item.label == PERSON}
    rows = []
    for number, counts in met.items():
        owner, times = counts.most_common(1)[0]
        rows.append((number, owner if times and owner in people else NOBODY))
    return np.array(rows, np.int64).reshape(-1, 2)


def _drone(record: RunRecord, stamps: NDArray[np.int64]) -> DronePath | None:
    if record.ego is None:
        return None
    known = [(stamp, state) for stamp in stamps if (state := record.ego.at(int(stamp)))]
    if not known:
        return None
    turns = [state.pose.rotation for _, state in known]
    return DronePath(
        np.array([stamp for stamp, _ in known], np.int64),
        np.array([state.pose.translation for _, state in known]),
        np.array([math.atan2(turn[1, 0], turn[0, 0]) for turn in turns]),
    )


def _arrays_of(seen: Observations) -> dict[str, NDArray[Any]]:
    tracks, drone = seen.tracks, seen.drone
    return {
        'track_ids': np.array([track.id for track in tracks], np.int64),
        'track_labels': np.array([track.label for track in tracks], np.str_),
        'track_lengths': np.array([len(track.stamps_ns) for track in tracks], np.int64),
        'track_stamps': np.concatenate([np.zeros(0, np.int64), *(t.stamps_ns for t in tracks)]),
        'track_positions': np.concatenate([np.zeros((0, 3)), *(t.positions for t in tracks)]),
        'track_velocities': np.concatenate([np.zeros((0, 3)), *(t.velocities for t in tracks)]),
        'track_deviations': np.concatenate([np.zeros(0), *(t.deviations for t in tracks)]),
        'track_seen': np.concatenate([np.zeros(0, bool), *(t.seen for t in tracks)]),
        'stamps': seen.stamps_ns,
        'camera': seen.camera,
        'frame_id': np.array(seen.frame_id),
        'drone_stamps': np.zeros(0, np.int64) if drone is None else drone.stamps_ns,
        'drone_positions': np.zeros((0, 3)) if drone is None else drone.positions,
        'drone_headings': np.zeros(0) if drone is None else drone.headings,
    }


def _observations(arrays: Mapping[str, NDArray[Any]]) -> Observations:
    ends = np.cumsum(arrays['track_lengths'])
    tracks = []
    for number, label, begin, end in zip(
        arrays['track_ids'],
        arrays['track_labels'],
        ends - arrays['track_lengths'],
        ends,
        strict=True,
    ):
        rows = slice(int(begin), int(end))
        views = arrays['look_tracks'] == number
        looks: Vectors = arrays['looks'][views]
        tracks.append(
            ObservedTrack(
                int(number),
                str(label),
                arrays['track_stamps'][rows],
                arrays['track_positions'][rows],
                arrays['track_velocities'][rows],
                arrays['track_deviations'][rows],
                arrays['track_seen'][rows],
                looks,
                tuple(map(int, arrays['look_ids'][views])),
            )
        )
    drone = None
    if len(arrays['drone_stamps']):
        drone = DronePath(
            arrays['drone_stamps'], arrays['drone_positions'], arrays['drone_headings']
        )
    return Observations(
        tuple(tracks), arrays['stamps'], arrays['camera'], str(arrays['frame_id']), drone
    )
