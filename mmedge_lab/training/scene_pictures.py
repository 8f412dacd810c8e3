"""Training pictures of many random scenes, without a recording.

A flight shows the same few people before the same background from its begin to its end, and all
of it is simulated. Here each scene is left after a few instants, and only the camera is simulated:
a hundred times as many people, clothes, gaits, places and lights in the same time. At each
instant two consecutive pictures are taken, of which the second follows a camera period later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_lab.simulation.build import CAMERA_PERIOD, build_world
from mmedge_lab.simulation.camera import CameraSimulator, PicturedObject, as_jpeg
from mmedge_lab.simulation.camera_faults import CameraFaults
from mmedge_lab.simulation.flight_folder import SIMULATOR_VERSION
from mmedge_lab.simulation.flight_set import PlannedFlight
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.checkpoint import read_index
from mmedge_lab.training.picture_set import (
    FACTS,
    PictureSet,
    begin_pictures,
    open_pictures,
    picture_files,
)
from mmedge_lab.worker_processes import OnShare, WorkError, do_works
from mmedge_ros import MmedgeError
from mmedge_ros.replay.ground_truth import TrueFrame

PAIRS = 6  # instants of a scene
_PICTURES = 2 * PAIRS
_LAYOUT = 1  # raise it when the same scenes give other files
# A process has to start first: it draws so many scenes.
SCENES_EACH = 20
_BEGUN = 'scenes.json'
_INSTANTS = 51  # random stream, see `scenario.Stream`

WriteScenes = Callable[[int, Sequence[PlannedFlight], OnShare], None]


def write_scene_pictures(
    folder: Path,
    planned: Sequence[PlannedFlight],
    jobs: int = 1,
    report: Report = lambda _share, _words: None,
) -> PictureSet:
    """Write the pictures of scenes, the first of a set, unless the folder has them.

    What a run that was cut short has written is kept, and so are the scenes of a smaller set.

    :param jobs: processes to use; 0 for one per processor
    :raises TrainingError: if the folder holds something else or cannot be written
    """
    scenes = len(planned)
    made_from: dict[str, Any] = {'layout': _LAYOUT, 'simulator': SIMULATOR_VERSION, 'pairs': PAIRS}
    if planned[0].condition:
        made_from['first'] = planned[0].name
    try:
        if not folder.is_dir() or not any(folder.iterdir()):
            begin_pictures(folder)
            (folder / _BEGUN).write_text(json.dumps(made_from))
        elif read_index(folder / _BEGUN) != made_from:
            raise TrainingError(
                f'{folder} holds something else, or scenes of another version; name another '
                'folder, or remove that one'
            )
        draw_scenes(
            planned,
            partial(_write_scenes, folder),
            jobs,
            report,
            is_done=lambda first: _last_file(folder, min(first + SCENES_EACH, scenes)).is_file(),
        )
        name = 'hard_scenes' if planned[0].condition else 'scenes'
        facts = {'name': name, 'scenes': scenes, 'simulator': SIMULATOR_VERSION}
        (folder / FACTS).write_text(json.dumps(facts))
    except OSError as err:
        raise TrainingError(
            f'{err.filename or folder}: {err.strerror or err}; make room there and run the same '
            'command again: it goes on where this one ended'
        ) from err
    return open_pictures(folder)


def draw_scenes(
    planned: Sequence[PlannedFlight],
    write: WriteScenes,
    jobs: int,
    report: Report,
    is_done: Callable[[int], bool] = lambda _first: False,
) -> None:
    """Have groups of scenes written by processes.

    :param write: writes some scenes, the first of which has a number; run in another process
    :param jobs: processes to use; 0 for one per processor
    :param is_done: whether the group that begins with a scene is there already
    :raises TrainingError: if one cannot be written
    """
    count = len(planned)
    groups = range(0, count, SCENES_EACH)
    works = {
        f'scenes from {first}': partial(write, first, planned[first : first + SCENES_EACH])
        for first in groups
        if not is_done(first)
    }
    shares = dict.fromkeys(works, 0.0)

    def on_share(name: str, share: float) -> None:
        shares[name] = share
        done = (len(groups) - len(works) + sum(shares.values())) / len(groups)
        report(done, f'{round(done * count)} of {count} scenes')

    try:
        do_works(works, jobs, (MmedgeError, OSError), on_share)
    except WorkError as err:
        raise TrainingError(f'{err.name}: {err}') from err


def _last_file(folder: Path, scenes: int) -> Path:
    """Return the last file of the first ``scenes`` scenes: once it is there, all are."""
    return folder / 'ignored' / f'{scenes * _PICTURES - 1:06d}.txt'


def _write_scenes(
    folder: Path, first: int, scenes: Sequence[PlannedFlight], on_share: OnShare
) -> None:
    for place, scene in enumerate(scenes):
        if not _last_file(folder, first + place + 1).is_file():
            _write_scene(folder, (first + place) * _PICTURES, scene)
        on_share((place + 1) / len(scenes))


def _write_scene(folder: Path, first: int, scene: PlannedFlight) -> None:
    """Write the pictures of a scene, numbered from ``first`` on."""
    world = build_world(scene.scenario, scene.seed, scene.seconds, False, scene.condition)
    camera, faults = CameraSimulator(world), CameraFaults(world)
    for place, instant in enumerate(instants(scene)):
        picture = camera.picture(instant)
        eye = world.path.state(instant).pose.translation
        away = [np.linalg.norm(mover.state(instant).position - eye) for mover in world.movers]
        clear = [
            faults.clear(instant, seen.box, float(distance))
            for seen, distance in zip(picture.objects, away, strict=True)
        ]
        truth = truth_of(picture.objects)._replace(clear=np.array(clear, np.bool_))
        files = picture_files(first + place, as_jpeg(picture.image), picture.image.shape, truth)
        for name, content in files.items():
            # The last file says that the scene is whole, so it must be so itself.
            part = folder / f'{name}.part'
            part.write_bytes(content)
            part.replace(folder / name)


def instants(scene: PlannedFlight) -> list[float]:
    """Return when the pictures of a scene are taken, s: pairs a camera period apart."""
    random = np.random.default_rng((scene.seed, _INSTANTS))
    drawn = (np.arange(PAIRS) + random.random(PAIRS)) / PAIRS
    begins = drawn * (scene.seconds - CAMERA_PERIOD)
    return [float(t) for begin in begins for t in (begin, begin + CAMERA_PERIOD)]


def truth_of(objects: Sequence[PicturedObject]) -> TrueFrame:
    """Return what is in a picture; where in the world it is does not matter here."""
    nowhere = np.full((len(objects), 3), np.nan)
    return TrueFrame(
        np.array([seen.id for seen in objects], np.int64),
        np.array([seen.label for seen in objects], np.str_),
        np.array([seen.box or (np.nan,) * 4 for seen in objects], np.float64).reshape(-1, 4),
        np.array([seen.visibility for seen in objects], np.float64),
        nowhere,
        nowhere,
        nowhere[:, 0],
        np.ones(len(objects), np.bool_),
        np.zeros(len(objects)),
    )
