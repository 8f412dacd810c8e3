"""Flights with their memories, built as `mmedge memory build` does, and kept for a judgement.

The views that were chosen are embedded in every way that is compared, so that a flight is
replayed once.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_under_test import flight_digest, software_digest
from mmedge_lab.judging.mean_colour import colour_vector
from mmedge_lab.judging.memory_truth import (
    NOBODY,
    SeenObject,
    cast_digest,
    heights_in_view,
    owner_of,
    scrubbed_until,
)
from mmedge_lab.judging.simulated_flight import simulated_flight
from mmedge_lab.simulation.appearance import MoverLook, looks_of
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.flight_folder import read_description
from mmedge_lab.worker_processes import OnShare, WorkError, peak_memory, value_within
from mmedge_ros import MmedgeError
from mmedge_ros.data_types import CAMERA, NS_PER_S, Box
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.crops import cut
from mmedge_ros.encoding.detector import Image
from mmedge_ros.memory.build import build_memory
from mmedge_ros.memory.encoders import MemoryEncoder
from mmedge_ros.memory.moment import StoredItem, Vectors, ViewKind
from mmedge_ros.memory.store import ItemTable, MemoryReader, memory_folder
from mmedge_ros.memory.store_file import FILE_NAME
from mmedge_ros.memory.views import MARGIN, object_thumbnail, picture_of
from mmedge_ros.records.ground_truth import GroundTruth
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.report_files import (
    arrays_bytes,
    kept_content,
    read_arrays,
    write_files,
)
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image

# Vectors of a recogniser's exit are named so; the last one is that of the whole recogniser.
EXIT = 'exit_{}'
PICTURE, TRUE_BOXES, MEAN_COLOUR = 'picture', 'true_boxes', 'mean_colour'
_PATIENCE = 3600.0
_REPLAYED = 0.7


@dataclass(frozen=True)
class MemoryTask:
    """A flight to remember with a bundle; ``digest`` is what the result depends on."""

    name: str
    flight: Path
    bundle: Path
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
        is_there = (memory_folder(self.link) / FILE_NAME).is_file()
        return None if content is None or not is_there else read_arrays(content, self._key)

    def keep(self, **arrays: NDArray[Any]) -> None:
        """Write what was found.

        :raises ReportError: if that is not possible
        """
        write_files(self._file.parent, {self._file.name: arrays_bytes(self._key, **arrays)})

    @property
    def _file(self) -> Path:
        return self.link.parent / 'views.npz'

    @property
    def _key(self) -> str:
        return f'{self.digest} {self.name}'


def memory_tasks(
    flights: Sequence[tuple[str, Path]], bundle: Path, folder: Path
) -> list[MemoryTask]:
    """Return the tasks of flights, given by name.

    :raises EncodingError: if a file cannot be read
    """
    made = sha256_of(bundle / MANIFEST) + software_digest()
    return [
        MemoryTask(name, flight, bundle, folder, f'{made} {flight_digest(flight)}')
        for name, flight in flights
    ]


@dataclass(frozen=True, eq=False)
class RememberedFlight:
    """A flight with its views and what is true of them.

    ``owners`` says which object an item shows, by its number, `NOBODY` where none; ``vectors``
    (N, D) and ``taps`` (N, T) are those of the rows of ``table``, by the name of what embedded
    them; ``cast`` is equal where two flights show the same movers on the same ways. ``costs`` are
    sums over the flight.
    """

    name: str
    seed: str
    light: str
    scenario: str
    cast: str
    objects: tuple[SeenObject, ...]
    looks: Mapping[int, MoverLook]
    table: ItemTable
    owners: Mapping[int, int]
    vectors: Mapping[str, Vectors]
    taps: Mapping[str, Vectors]
    costs: Mapping[str, float]


def remember(task: MemoryTask, on_share: OnShare) -> None:
    """Build the memory of a flight and embed its views in every way.

    :raises EvaluationError: if it is no simulated flight with truth
    """
    simulated_flight(task.flight)
    task.link.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        task.link.symlink_to(task.flight.absolute())
    try:
        built = value_within(task.name, _PATIENCE, partial(_build, task), (MmedgeError,))
    except WorkError as err:
        raise EvaluationError(str(err)) from err
    on_share(_REPLAYED)
    with Recording(task.link) as recording, MemoryReader(memory_folder(task.link)) as memory:
        truth = recording.truth()
        if truth is None or not truth.scenes:
            raise EvaluationError(f'{task.flight} has no ground truth; name simulated flights')
        heights, scrubbed = heights_in_view(truth.scenes), scrubbed_until(truth.scenes)
        table = memory.table()
        owners = [_owner(truth, table.item(row)) for row in range(len(table))]
        costs = {
            **built,
            'seconds': (truth.stamps_ns[-1] - truth.stamps_ns[0]) / NS_PER_S,
            'items': len(table),
            'objects': np.count_nonzero(table.integers['kind'] == ViewKind.TRACK),
            'bytes': (memory_folder(task.link) / FILE_NAME).stat().st_size,
        }
        embedded = _embedded(task.bundle, memory, truth, owners, recording)
        task.keep(
            owners=np.array(owners, np.int64),
            objects=np.array([(n, scrubbed.get(n, 0)) for n in heights], np.int64).reshape(-1, 2),
            heights=np.array(list(heights.values())),
            light=np.array(truth.scenes[0].light),
            **{f'cost_{name}': np.array(float(value)) for name, value in costs.items()},
            **embedded,
        )


def read_remembered(task: MemoryTask) -> RememberedFlight:
    """Return what was found of a flight.

    :raises EvaluationError: if it was written and cannot be read
    """
    arrays, made = task.arrays(), read_description(task.flight)
    if arrays is None or made is None:
        raise EvaluationError(
            f'flight {task.name}: its views were written and cannot be read; look for a full or '
            'failing disk and run the same command again'
        )
    movers = build_world(made.scenario, made.seed, made.seconds, made.patrol).movers
    looks, light, seed = looks_of(movers), str(arrays['light']), str(made.seed)
    with MemoryReader(memory_folder(task.link)) as memory:
        table = memory.table()
    objects = zip(arrays['objects'].tolist(), arrays['heights'].tolist(), strict=True)
    return RememberedFlight(
        name=task.name,
        seed=seed,
        light=light,
        scenario=made.scenario,
        cast=f'{seed} {cast_digest(movers)}',
        objects=tuple(
            SeenObject(task.name, seed, light, number, looks[number], height, scrubbed)
            for (number, scrubbed), height in objects
        ),
        looks=looks,
        table=table,
        owners=dict(zip(table.integers['id'].tolist(), arrays['owners'].tolist(), strict=True)),
        vectors=_named(arrays, 'vectors_'),
        taps=_named(arrays, 'taps_'),
        costs={name: float(value) for name, value in _named(arrays, 'cost_').items()},
    )


def _named(arrays: Mapping[str, NDArray[Any]], begin: str) -> dict[str, Any]:
    return {k.removeprefix(begin): v for k, v in arrays.items() if k.startswith(begin)}


def _build(task: MemoryTask) -> dict[str, float]:
    """Build a memory; return the processor time (s) and the memory (MB) that it took."""
    begun = time.process_time()
    build_memory(str(task.link), str(task.bundle))
    return {'build_s': time.process_time() - begun, 'peak_mb': peak_memory() / 2**20}


def _owner(truth: GroundTruth, stored: StoredItem) -> int:
    if stored.item.kind is not ViewKind.TRACK:
        return NOBODY
    return owner_of(truth.frame_at(stored.item.stamp_ns), stored.item.box)


def _embedded(
    bundle: Path,
    memory: MemoryReader,
    truth: GroundTruth,
    owners: Sequence[int],
    recording: Recording,
) -> dict[str, NDArray[Any]]:
    """Return vectors, taps and processor time (s) of all views by what embeds them."""
    usual, table = MemoryEncoder(bundle), memory.table()
    encoders = {EXIT.format(usual.exit): usual}
    for number in range(1, usual.stages + 1):
        with suppress(EncodingError):  # an exit without a head
            encoders.setdefault(EXIT.format(number), MemoryEncoder(bundle, number))
    count = len(table)
    found = {'vectors_mean_colour': np.zeros((count, len(colour_vector(_BLANK))), np.float32)}
    for name in (*encoders, PICTURE, TRUE_BOXES):
        header = encoders.get(name, usual).header
        found[f'vectors_{name}'] = np.zeros((count, header.length), np.float32)
        found[f'taps_{name}'] = np.zeros((count, header.tap_length), np.float32)
    spent = dict.fromkeys(encoders, 0.0)
    for picture, row, stored in _pictures(recording, table):
        box = stored.item.box
        thumbnail = memory.thumbnail(stored.id)
        true_box = _true_box(truth, stored, owners[row])
        looks = {
            PICTURE: usual.look(cut(picture, box, MARGIN)),
            TRUE_BOXES: usual.look(_shown(object_thumbnail(picture, true_box))),
        }
        for name, encoder in encoders.items():
            begun = time.process_time()
            looks[name] = encoder.look(_shown(thumbnail))
            spent[name] += time.process_time() - begun
        for name, look in looks.items():
            found[f'vectors_{name}'][row], found[f'taps_{name}'][row] = look
        crop = np.ascontiguousarray(cut(picture, box))
        found['vectors_mean_colour'][row] = colour_vector(crop)
    return found | {f'cost_{name}_s': np.array(seconds) for name, seconds in spent.items()}


def _pictures(recording: Recording, table: ItemTable) -> Iterator[tuple[Image, int, StoredItem]]:
    wanted: dict[int, list[tuple[int, StoredItem]]] = defaultdict(list)
    for row in np.flatnonzero(table.integers['kind'] == ViewKind.TRACK).tolist():
        wanted[int(table.integers['stamp'][row])].append((row, table.item(row)))
    for unit in recording.units():
        views = wanted.get(unit.stamp_ns, []) if unit.modality == CAMERA else []
        if views:
            with suppress(SensingError):  # the replay has counted it
                picture = decode_image(unit.payload)
                yield from ((picture, row, stored) for row, stored in views)


def _true_box(truth: GroundTruth, stored: StoredItem, owner: int) -> Box:
    """Return the true box of the object that a view shows; its own where it shows none."""
    frame = truth.frame_at(stored.item.stamp_ns)
    if owner == NOBODY or frame is None:
        return stored.item.box
    return Box(*map(float, frame.boxes[int(np.flatnonzero(frame.ids == owner)[0])]))


def _shown(thumbnail: bytes) -> Image:
    """Return what a thumbnail shows, which is what a memory embeds."""
    crop = picture_of(thumbnail)
    assert crop is not None  # it was made here
    return crop


_BLANK: Image = np.zeros((72, 48, 3), np.uint8)
