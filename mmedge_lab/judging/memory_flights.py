"""Flights with their memories, built as `mmedge memory build` does, and what is true of them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mmedge_lab.judging.bench import Subject, Sums
from mmedge_lab.judging.judged_flight import simulated_flight, simulated_truth
from mmedge_lab.judging.mean_colour import LENGTH, colour_vector
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
from mmedge_lab.simulation.scenario import find_scenario
from mmedge_lab.worker_processes import peak_memory
from mmedge_ros.core.data_types import CAMERA, NS_PER_S
from mmedge_ros.encoding.crops import cut
from mmedge_ros.memory.build import build_memory
from mmedge_ros.memory.moment import StoredItem, Vectors, ViewKind
from mmedge_ros.memory.store import ItemTable, MemoryReader, memory_folder
from mmedge_ros.memory.store_file import FILE_NAME
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image


@dataclass(frozen=True, eq=False)
class RememberedFlight:
    """A flight with its views and what is true of them.

    ``owners`` says which object an item shows, by its number, `NOBODY` where none; ``colours``
    (N, D) are those of the rows of ``table``; ``cast`` is equal where two flights show the same
    movers on the same ways.
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
    colours: Vectors


def remember(bundle: Path, folder: Path, subject: Subject) -> Sums:
    """Build the memory of a flight below a folder, and note what is true of its views.

    Returns what that cost, time in s, memory and bytes; and for `read_remembered` the owner and
    the colours of each view, and id, height and `RememberedObject.scrubbed` of each object.

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
        truth, table = simulated_truth(recording), memory.table()
        heights, scrubbed = heights_in_view(truth.scenes), scrubbed_until(truth.scenes)
        owners = [_owner(truth, table.item(row)) for row in range(len(table))]
        colours = _colours(recording, table)
    return {
        'build_s': built,
        'seconds': (truth.stamps_ns[-1] - truth.stamps_ns[0]) / NS_PER_S,
        'peak_mb': peak_memory() / 2**20,
        'bytes': float((memory_folder(link) / FILE_NAME).stat().st_size),
        'items': float(len(table)),
        'owners': list(map(float, owners)),
        'colours': colours.reshape(-1).tolist(),
        'ids': list(map(float, heights)),
        'heights': list(heights.values()),
        'scrubbed': [float(scrubbed.get(number, 0)) for number in heights],
    }


def read_remembered(folder: Path, subject: Subject, noted: Sums) -> RememberedFlight:
    """Return a flight whose memory was built.

    :param noted: what `remember` returned
    :raises EvaluationError: if the flight does not say what it was made from
    """
    link = _link(folder, subject)
    made = simulated_flight(link)
    movers = build_world(made.scenario, made.seed, made.seconds, made.patrol).movers
    looks, light, seed = looks_of(movers), find_scenario(made.scenario).light, str(made.seed)
    with MemoryReader(memory_folder(link)) as memory:
        table = memory.table()
    ids, heights, scrubbed, owners, colours = (
        np.asarray(noted[name], float).reshape(-1)
        for name in ('ids', 'heights', 'scrubbed', 'owners', 'colours')
    )
    return RememberedFlight(
        name=subject.name,
        seed=seed,
        light=light,
        scenario=made.scenario,
        cast=f'{seed} {cast_digest(movers)}',
        objects=tuple(
            RememberedObject(subject.name, seed, light, int(n), looks[int(n)], height, int(first))
            for n, height, first in zip(ids, heights, scrubbed, strict=True)
        ),
        looks=looks,
        table=table,
        owners=dict(zip(table.integers['id'].tolist(), owners.astype(int).tolist(), strict=True)),
        colours=np.asarray(colours.reshape(-1, LENGTH), np.float32),
    )


def _link(folder: Path, subject: Subject) -> Path:
    """Return where the flight seems to lie, so that its memory lies in the folder of results."""
    return folder / subject.name / subject.name


def _owner(truth: GroundTruth, stored: StoredItem) -> int:
    if stored.item.kind is not ViewKind.TRACK:
        return NOBODY
    return owner_of(truth.frame_at(stored.item.stamp_ns), stored.item.box)


def _colours(recording: Recording, table: ItemTable) -> Vectors:
    """Return the `colour_vector`s (N, D) of views, of their pictures; 0 of key frames."""
    colours = np.zeros((len(table), LENGTH), np.float32)
    wanted: dict[int, list[int]] = defaultdict(list)
    for row in np.flatnonzero(table.integers['kind'] == ViewKind.TRACK).tolist():
        wanted[int(table.integers['stamp'][row])].append(row)
    for unit in recording.units():
        rows = wanted.get(unit.stamp_ns, []) if unit.modality == CAMERA else []
        if rows:
            with suppress(SensingError):  # the replay has counted it
                picture = decode_image(unit.payload)
                for row in rows:
                    crop = np.ascontiguousarray(cut(picture, table.item(row).item.box))
                    colours[row] = colour_vector(crop)
    return colours
