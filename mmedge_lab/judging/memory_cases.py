"""Flights with their memories, built as `mmedge memory build` does, and kept for a judgement.

The views that were chosen are embedded by every rival, so that a flight is replayed once.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_under_test import flight_digest, software_digest
from mmedge_lab.judging.colour_features import colour_features
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
from mmedge_ros.data_types import CAMERA, NS_PER_S, Box, Configuration, ModalityConfiguration
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import model_levels
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.crops import cut
from mmedge_ros.encoding.detector import Image
from mmedge_ros.memory.build import build_memory
from mmedge_ros.memory.encoders import MemoryEncoder
from mmedge_ros.memory.moment import StoredItem, Vectors, ViewKind
from mmedge_ros.memory.store import ItemTable, MemoryReader, memory_folder
from mmedge_ros.memory.store_file import FILE_NAME
from mmedge_ros.memory.views import object_thumbnail, picture_of
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
PICTURE, TRUE_BOXES, COLOUR = 'picture', 'true_boxes', 'colour'
_PATIENCE = 3600.0
_REPLAYED, _LEVEL_SECONDS, _MOST_STEPS = 0.7, 2.0, 7
# Around an object, as its thumbnail has it.
_MARGIN = 0.1


@dataclass(frozen=True)
class MemoryTask:
    """A flight to remember with a bundle; with ``steps`` levels change every two seconds."""

    flight_name: str
    flight: Path
    bundle: Path
    folder: Path
    digest: str
    steps: bool = False

    @property
    def name(self) -> str:
        return f'{self.flight_name} in steps' if self.steps else self.flight_name

    @property
    def link(self) -> Path:
        """Where the flight seems to lie, so that its memory lies in the folder of results."""
        kind = 'steps' if self.steps else 'flights'
        return self.folder / kind / self.flight_name / self.flight.name

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
    flights: Sequence[tuple[str, Path]], bundle: Path, folder: Path, steps: bool = False
) -> list[MemoryTask]:
    """Return the tasks of flights, given by name.

    :raises EncodingError: if a file cannot be read
    """
    made = sha256_of(bundle / MANIFEST) + software_digest()
    return [
        MemoryTask(name, flight, bundle, folder, f'{made} {flight_digest(flight)}', steps)
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
    problems: tuple[str, ...] = ()


class _Built(NamedTuple):
    """What building a memory took, processor time (s) and memory (MB), with its problems."""

    seconds: float
    peak_mb: float
    problems: tuple[str, ...]


def remember(task: MemoryTask, on_share: OnShare) -> None:
    """Build the memory of a flight and embed its views by every rival.

    :raises EvaluationError: if it is no simulated flight with truth
    """
    simulated_flight(task.flight)
    task.link.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        task.link.symlink_to(task.flight.absolute())
    try:
        built: _Built = value_within(task.name, _PATIENCE, partial(_build, task), (MmedgeError,))
    except WorkError as err:
        raise EvaluationError(str(err)) from err
    on_share(_REPLAYED)
    with Recording(task.link) as recording, MemoryReader(memory_folder(task.link)) as memory:
        truth = recording.truth()
        if truth is None or not truth.scenes:
            raise EvaluationError(f'{task.flight} has no ground truth; name simulated flights')
        seen = _Views(memory, truth)
        spent = seen.embed(recording, _encoders(task.bundle), plain=task.steps)
        heights = heights_in_view(truth.scenes)
        scrubbed = scrubbed_until(truth.scenes)
        task.keep(
            owners=np.array(list(seen.owners.values()), np.int64),
            objects=np.array(list(heights), np.int64),
            heights=np.array(list(heights.values())),
            scrubbed=np.array([scrubbed.get(number, 0) for number in heights], np.int64),
            light=np.array(truth.scenes[0].light),
            problems=np.array(built.problems, np.str_),
            cost_build_s=np.array(built.seconds),
            cost_peak_mb=np.array(built.peak_mb),
            cost_seconds=np.array(truth.stamps_ns[-1] - truth.stamps_ns[0]) / NS_PER_S,
            cost_bytes=np.array((memory_folder(task.link) / FILE_NAME).stat().st_size),
            **{f'cost_{name}': np.array(value) for name, value in (spent | seen.bytes()).items()},
            **{f'vectors_{name}': vectors for name, vectors in seen.vectors.items()},
            **{f'taps_{name}': taps for name, taps in seen.taps.items()},
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
    return RememberedFlight(
        name=task.flight_name,
        seed=seed,
        light=light,
        scenario=made.scenario,
        cast=f'{seed} {cast_digest(movers)}',
        objects=tuple(
            SeenObject(
                task.flight_name,
                seed,
                light,
                int(number),
                looks[int(number)],
                float(height),
                int(scrubbed),
            )
            for number, height, scrubbed in zip(
                arrays['objects'], arrays['heights'], arrays['scrubbed'], strict=True
            )
        ),
        looks=looks,
        table=table,
        owners=dict(zip(map(int, table.integers['id']), map(int, arrays['owners']), strict=True)),
        vectors=_named(arrays, 'vectors_'),
        taps=_named(arrays, 'taps_'),
        costs={name: float(value) for name, value in _named(arrays, 'cost_').items()},
        problems=tuple(map(str, arrays['problems'])),
    )


def rows_of(table: ItemTable, rows: NDArray[np.intp]) -> ItemTable:
    """Return some of the items of a table."""
    return replace(
        table,
        integers={name: values[rows] for name, values in table.integers.items()},
        texts={name: values[rows] for name, values in table.texts.items()},
        facts=table.facts[rows],
        vectors=table.vectors[rows],
        packed_taps=table.packed_taps[rows],
    )


def _named(arrays: Mapping[str, NDArray[Any]], begin: str) -> dict[str, Any]:
    return {k.removeprefix(begin): v for k, v in arrays.items() if k.startswith(begin)}


def _build(task: MemoryTask) -> _Built:
    begun = time.process_time()
    steps = _level_steps(task) if task.steps else ()
    built = build_memory(str(task.link), str(task.bundle), configurations=steps)
    return _Built(time.process_time() - begun, peak_memory() / 2**20, built.problems)


def _level_steps(task: MemoryTask) -> tuple[Configuration, ...]:
    """Return configurations that go through the camera's levels, a schedule's worth of them."""
    levels, _ = model_levels(task.bundle)
    with Recording(task.link) as recording:
        stamps = recording.camera_stamps_ns()
    if not levels or not len(stamps):
        return ()
    begin_ns, end_ns = int(stamps[0]), int(stamps[-1])
    step_ns = max(round(_LEVEL_SECONDS * NS_PER_S), -(-(end_ns - begin_ns) // _MOST_STEPS))
    return tuple(
        Configuration(
            number + 1,
            begin_ns + number * step_ns,
            (ModalityConfiguration(CAMERA, level=levels[number % len(levels)]),),
        )
        for number in range(_MOST_STEPS)
    )


def _encoders(bundle: Path) -> dict[str, MemoryEncoder]:
    """Return an encoder for each exit that has a head, and first the one that `build` uses."""
    usual = MemoryEncoder(bundle)
    encoders = {EXIT.format(usual.exit): usual}
    for number in range(1, usual.stages + 1):
        with suppress(EncodingError):
            encoders.setdefault(EXIT.format(number), MemoryEncoder(bundle, number))
    return encoders


class _Views:
    """The items of a memory, whom they show, and how rivals embed them."""

    def __init__(self, memory: MemoryReader, truth: GroundTruth) -> None:
        self.vectors: dict[str, Vectors] = {}
        self.taps: dict[str, Vectors] = {}
        self.owners: dict[int, int] = {}
        self._memory = memory
        self._truth = truth
        self._table = memory.table()
        self._wanted: dict[int, list[tuple[int, StoredItem]]] = defaultdict(list)
        for row in range(len(self._table)):
            stored = self._table.item(row)
            is_track = stored.item.kind is ViewKind.TRACK
            frame = truth.frame_at(stored.item.stamp_ns) if is_track else None
            self.owners[stored.id] = owner_of(frame, stored.item.box) if is_track else NOBODY
            if is_track:
                self._wanted[stored.item.stamp_ns].append((row, stored))

    def embed(
        self, recording: Recording, encoders: Mapping[str, MemoryEncoder], plain: bool
    ) -> dict[str, float]:
        """Embed all views; return the processor time (s) that each encoder took.

        :param encoders: the first one is that of the memory
        :param plain: by nothing but encoders
        """
        usual = next(iter(encoders.values()))
        names = [*encoders, *(() if plain else (PICTURE, TRUE_BOXES))]
        count = len(self._table)
        for name in names:
            header = encoders.get(name, usual).header
            self.vectors[name] = np.zeros((count, header.length), np.float32)
            self.taps[name] = np.zeros((count, header.tap_length), np.float32)
        colours = np.zeros((count, len(colour_features(_BLANK))), np.float32)
        for encoder in encoders.values():
            encoder.of_crops([_BLANK])  # the first time takes longer
        spent = dict.fromkeys((f'{name}_s' for name in encoders), 0.0)
        for picture, row, stored in self._pictures(recording):
            thumbnail, box = self._memory.thumbnail(stored.id), stored.item.box
            for name, encoder in encoders.items():
                begun = time.process_time()
                crop = _shown(thumbnail)
                self.vectors[name][row] = encoder.of_crops([crop])[0]
                spent[f'{name}_s'] += time.process_time() - begun
                self.taps[name][row] = encoder.taps_of([crop])[0]
            if plain:
                continue
            true = object_thumbnail(picture, self._true_box(stored))
            for name, crop in ((PICTURE, cut(picture, box, _MARGIN)), (TRUE_BOXES, _shown(true))):
                self.vectors[name][row] = usual.of_crops([crop])[0]
                self.taps[name][row] = usual.taps_of([crop])[0]
            colours[row] = colour_features(np.ascontiguousarray(cut(picture, box)))
        if not plain:
            self.vectors[COLOUR] = colours
        return spent

    def bytes(self) -> dict[str, float]:
        """Return how many items there are, and the bytes of their thumbnails, by kind."""
        kinds = self._table.integers['kind']
        sizes = np.array([len(self._memory.thumbnail(number)) for number in self.owners])
        is_track = kinds == ViewKind.TRACK
        return {
            'objects': float(np.count_nonzero(is_track)),
            'key_frames': float(np.count_nonzero(~is_track)),
            'object_thumbnails': float(sizes[is_track].sum()),
            'key_frame_thumbnails': float(sizes[~is_track].sum()),
        }

    def _pictures(self, recording: Recording) -> Iterator[tuple[Image, int, StoredItem]]:
        for unit in recording.units():
            views = self._wanted.get(unit.stamp_ns, []) if unit.modality == CAMERA else []
            if not views:
                continue
            try:
                picture = decode_image(unit.payload)
            except SensingError:
                continue  # the replay has counted it
            for row, stored in views:
                yield picture, row, stored

    def _true_box(self, stored: StoredItem) -> Box:
        """Return the true box of the object that a view shows; its own where it shows none."""
        owner, frame = self.owners[stored.id], self._truth.frame_at(stored.item.stamp_ns)
        if owner == NOBODY or frame is None:
            return stored.item.box
        return Box(*map(float, frame.boxes[int(np.flatnonzero(frame.ids == owner)[0])]))


def _shown(thumbnail: bytes) -> Image:
    """Return what a thumbnail shows, which is what a memory embeds."""
    crop = picture_of(thumbnail)
    assert crop is not None  # it was made here
    return crop


_BLANK: Image = np.zeros((72, 48, 3), np.uint8)
