"""Flights with their memories, built as `mmedge memory build` does, and kept for a judgement.

The views that were chosen are embedded in every way that is compared, so that a flight is
replayed once.
"""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Subject, Sums
from mmedge_lab.judging.judged_flight import simulated_flight, simulated_truth
from mmedge_lab.judging.mean_colour import colour_vector
from mmedge_lab.judging.memory_truth import (
    NOBODY,
    RememberedObject,
    cast_digest,
    heights_in_view,
    owner_of,
    scrubbed_until,
)
from mmedge_lab.simulation.appearance import MoverLook, looks_of
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.flight_folder import read_description
from mmedge_lab.worker_processes import peak_memory
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Box
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.crops import cut
from mmedge_ros.encoding.detector import Image
from mmedge_ros.memory.build import build_memory
from mmedge_ros.memory.encoders import MemoryEncoder
from mmedge_ros.memory.moment import StoredItem, Vectors, ViewKind
from mmedge_ros.memory.store import ItemTable, MemoryReader, memory_folder
from mmedge_ros.memory.store_file import FILE_NAME
from mmedge_ros.memory.views import MARGIN, object_thumbnail, picture_of
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.report_files import kept_content, write_files
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image

# Vectors of a recogniser's exit are named so; the last one is that of the whole recogniser.
EXIT = 'exit_{}'
PICTURE, TRUE_BOXES, MEAN_COLOUR = 'picture', 'true_boxes', 'mean_colour'
_VIEWS = 'views.npz'
_DIGEST_BYTES = 32


@dataclass(frozen=True, eq=False)
class RememberedFlight:
    """A flight with its views and what is true of them.

    ``owners`` says which object an item shows, by its number, `NOBODY` where none; ``vectors``
    (N, D) and ``taps`` (N, T) are those of the rows of ``table``, by the name of what embedded
    them; ``cast`` is equal where two flights show the same movers on the same ways.
    """

    name: str
    seed: str
    light: str
    scenario: str
    cast: str
    objects: tuple[RememberedObject, ...]
    looks: Mapping[int, MoverLook]
    table: ItemTable
    owners: Mapping[int, int]
    vectors: Mapping[str, Vectors]
    taps: Mapping[str, Vectors]


def remember(bundle: Path, folder: Path, subject: Subject) -> Sums:
    """Build the memory of a flight, embed its views in every way, and keep them in a folder.

    Returns what that cost: processor time (s, ms of the views at each exit), memory and bytes.

    :raises EvaluationError: if it is no simulated flight with truth
    """
    flight = subject.flight
    simulated_flight(flight)
    link = _link(folder, subject)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)  # a flight of another set may have had this name
    link.symlink_to(flight.absolute())
    begun = time.process_time()
    build_memory(str(link), str(bundle))
    built = time.process_time() - begun
    with Recording(link) as recording, MemoryReader(memory_folder(link)) as memory:
        truth = simulated_truth(recording)
        heights, scrubbed = heights_in_view(truth.scenes), scrubbed_until(truth.scenes)
        table = memory.table()
        owners = [_owner(truth, table.item(row)) for row in range(len(table))]
        embedded, spent = _embedded(bundle, memory, truth, owners, recording)
        kept = _arrays_bytes(
            subject.name,
            owners=np.array(owners, np.int64),
            objects=np.array([(n, scrubbed.get(n, 0)) for n in heights], np.int64).reshape(-1, 2),
            heights=np.array(list(heights.values())),
            light=np.array(truth.scenes[0].light),
            **embedded,
        )
    write_files(link.parent, {_VIEWS: kept})
    return {
        'build_s': built,
        'seconds': (truth.stamps_ns[-1] - truth.stamps_ns[0]) / NS_PER_S,
        'peak_mb': peak_memory() / 2**20,
        'bytes': float((memory_folder(link) / FILE_NAME).stat().st_size),
        'items': float(len(table)),
        'objects': float(np.count_nonzero(table.integers['kind'] == ViewKind.TRACK)),
        **{name: 1e3 * seconds for name, seconds in spent.items()},
    }


def read_remembered(folder: Path, subject: Subject) -> RememberedFlight:
    """Return what was kept of a flight.

    :raises EvaluationError: if it cannot be read
    """
    link = _link(folder, subject)
    content, made = kept_content(link.parent / _VIEWS), read_description(link)
    arrays = None if content is None else _read_arrays(content, subject.name)
    if arrays is None or made is None:
        raise EvaluationError(
            f'flight {subject.name}: its views were written and cannot be read; delete '
            f'{folder.parent} and run the same command again'
        )
    movers = build_world(made.scenario, made.seed, made.seconds, made.patrol).movers
    looks, light, seed = looks_of(movers), str(arrays['light']), str(made.seed)
    with MemoryReader(memory_folder(link)) as memory:
        table = memory.table()
    objects = zip(arrays['objects'].tolist(), arrays['heights'].tolist(), strict=True)
    return RememberedFlight(
        name=subject.name,
        seed=seed,
        light=light,
        scenario=made.scenario,
        cast=f'{seed} {cast_digest(movers)}',
        objects=tuple(
            RememberedObject(subject.name, seed, light, number, looks[number], height, scrubbed)
            for (number, scrubbed), height in objects
        ),
        looks=looks,
        table=table,
        owners=dict(zip(table.integers['id'].tolist(), arrays['owners'].tolist(), strict=True)),
        vectors=_named(arrays, 'vectors_'),
        taps=_named(arrays, 'taps_'),
    )


def _link(folder: Path, subject: Subject) -> Path:
    """Return where the flight seems to lie, so that its memory lies in the folder of results."""
    return folder / subject.name / subject.name


def _named(arrays: Mapping[str, NDArray[Any]], begin: str) -> dict[str, Any]:
    return {k.removeprefix(begin): v for k, v in arrays.items() if k.startswith(begin)}


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
) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
    """Return vectors and taps of all views by what embeds them, and its processor time (s)."""
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
    return found, spent


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


def _arrays_bytes(key: str, **arrays: NDArray[np.generic]) -> bytes:
    """Return a compressed file of arrays behind its SHA-256.

    :param key: says what the arrays belong to
    """
    content = io.BytesIO()
    # numpy types its own options as booleans, which every further name then clashes with.
    np.savez_compressed(content, key=np.array(key), **arrays)  # type: ignore[arg-type]
    body = content.getvalue()
    return hashlib.sha256(body).digest() + body


def _read_arrays(content: bytes, key: str) -> dict[str, NDArray[Any]] | None:
    """Read arrays back; None for a damaged file or one of another key."""
    digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            arrays = dict(file.items())
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    return arrays if 'key' in arrays and str(arrays['key']) == key else None
