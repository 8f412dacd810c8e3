"""Crops of simulated objects with how they look: what a recogniser learns from.

The pictures are those of random scenes (`scene_pictures`), one of each pair. Crops are cut from
the JPEG that the camera sends, with room around the box, so that a training can shift it.

A class is a label with a colour, such as ``person red``: it is what recurs. Attributes are what is
said of an object besides.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.appearance import COLOURS, MoverLook, looks_of
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.camera import CameraSimulator, as_jpeg
from mmedge_lab.simulation.flight_set import PlannedFlight
from mmedge_lab.simulation.scenario import LIGHTS, find_scenario
from mmedge_lab.simulation.standard_sets import scene_set
from mmedge_lab.simulation.world import LABELS
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.scene_pictures import SCENES_EACH, draw_scenes, instants
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import Box
from mmedge_ros.encoding.crops import CropForm, cut, resized
from mmedge_ros.encoding.detector import Image
from mmedge_ros.report.report_files import write_files

_NO_YES = ('no', 'yes')
# The attributes of a recogniser and their values; of the first, the colour, it is the class.
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    'bottom': COLOURS,
    'backpack': _NO_YES,
    'child': _NO_YES,
}
CLASSES = tuple(f'{label} {colour}' for label in LABELS for colour in COLOURS)
UNKNOWN = -1
# Kept crops are this large (width, height, px), with this margin around the box on each side.
CROP_SIZE, CROP_MARGIN = (48, 72), 0.3
# Smaller or more hidden objects (px, share) are not taken.
LEAST_HEIGHT, LEAST_VISIBILITY = 14.0, 0.5
# Of ten scenes, those that thresholds are fitted on, and those that only judge. Scenarios come
# back every 60 scenes: by number alone, six of them would judge, none of them by day.
_EVERY, _FITTED, _JUDGED = 10, (7, 8), (9,)
_SCENARIOS = 60
_OBJECTS_OF_A_SCENE = 100_000
_PARTS = ('crops', 'facts', 'heights', 'lights', 'scenes', 'objects')


class LabelFacts(NamedTuple):
    """Numbers of `CLASSES` and of the values of `ATTRIBUTES`; -1 where there is nothing to say."""

    kind: int
    bottom: int
    backpack: int
    child: int


def facts_of(look: MoverLook) -> LabelFacts:
    """Return what is true of an object that looks so."""
    kind = CLASSES.index(f'{look.label} {look.colour}')
    if not look.wears:
        return LabelFacts(kind, UNKNOWN, UNKNOWN, UNKNOWN)
    child = int(look.child) if look.label == 'person' else UNKNOWN
    return LabelFacts(kind, COLOURS.index(look.bottom), int(look.backpack), child)


def label_of(name: str) -> str:
    """Return the label of a class, such as person of ``person red``."""
    return name.split(' ', maxsplit=1)[0]


def colour_of(name: str) -> str:
    """Return the colour of a class, such as red of ``person red``; '' where it names none."""
    return name.partition(' ')[2]


class CropSet(NamedTuple):
    """Crops (N, 72, 48, 3) uint8 BGR and what is true of them.

    ``facts`` (N, F) are those of `LabelFacts`; ``heights`` (N,) of the boxes in px; ``lights``
    (N,) numbers of `LIGHTS`; ``scenes`` and ``objects`` (N,) say whose crops are of one object.
    """

    crops: NDArray[np.uint8]
    facts: NDArray[np.int8]
    heights: NDArray[np.float32]
    lights: NDArray[np.int8]
    scenes: NDArray[np.int32]
    objects: NDArray[np.int32]

    def rows(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> CropSet:
        """Return some of the crops."""
        return CropSet._make(part[chosen] for part in self)


class SeenCrop(NamedTuple):
    """One object in one picture."""

    crop: Image
    facts: LabelFacts
    height: float
    light: int
    scene: int
    object: int


def write_crops(
    folder: Path, scenes: int, jobs: int = 1, report: Report = lambda _share, _words: None
) -> CropSet:
    """Return the crops of the first ``scenes`` standard scenes; what the folder has is kept.

    :param jobs: processes to use; 0 for one per processor
    :raises TrainingError: if one cannot be drawn
    :raises ReportError: if the folder cannot be written
    """
    files = [_file(folder, first) for first in range(0, scenes, SCENES_EACH)]
    draw_scenes(
        scene_set(scenes),
        partial(_write_group, folder),
        jobs,
        report,
        is_done=lambda first: _file(folder, first).is_file(),
    )
    return read_crops(files)


def crop_files(folder: Path) -> list[Path]:
    """Return the files of kept crops in a folder.

    :raises TrainingError: if there are none
    """
    files = sorted(folder.glob('crops_*.npz'))
    if not files:
        raise TrainingError(
            f'{folder} holds no crops; name the folder that `mmedge lab train recogniser --crops` '
            'keeps'
        )
    return files


def read_crops(files: Sequence[Path]) -> CropSet:
    """Return the crops of files.

    :raises TrainingError: if one cannot be read, or there is none in them
    """
    groups = []
    for path in files:
        try:
            with np.load(path, allow_pickle=False) as file:
                groups.append(CropSet(*(file[name] for name in _PARTS)))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as err:
            raise TrainingError(f'{path} cannot be read ({err}); remove it') from err
    if not any(len(group.crops) for group in groups):
        raise TrainingError('the scenes show no object that is large enough; take more of them')
    return CropSet(*(np.concatenate(part) for part in zip(*groups, strict=True)))


def crop_set(seen: Sequence[SeenCrop]) -> CropSet:
    """Return crops as arrays."""
    shape = (len(seen), CROP_SIZE[1], CROP_SIZE[0], 3)
    return CropSet(
        np.array([one.crop for one in seen], np.uint8).reshape(shape),
        np.array([one.facts for one in seen], np.int8).reshape(len(seen), len(LabelFacts._fields)),
        np.array([one.height for one in seen], np.float32),
        np.array([one.light for one in seen], np.int8),
        np.array([one.scene for one in seen], np.int32),
        np.array([one.object for one in seen], np.int32),
    )


def kept_crop(picture: Image, box: Box) -> Image:
    """Return a box of a picture with the room around it, in the size in which crops are kept.

    :raises EncodingError: if nothing of it lies in the picture
    """
    return resized(np.ascontiguousarray(cut(picture, box, CROP_MARGIN)), CROP_SIZE)


def cut_anew(crops: CropSet, form: CropForm) -> list[Image]:
    """Return kept crops as `crops.crop_input` would cut and resize them from the picture."""
    box = box_of_object()
    return [
        resized(np.ascontiguousarray(cut(crop, box, form.margin, form.square)), form.size)
        for crop in crops.crops
    ]


def box_of_object(larger: float = 0.0) -> Box:
    """Return where the object is in a kept crop, larger by a share of its size on each side."""
    width, height = CROP_SIZE
    share = (1.0 + 2.0 * larger) / (1.0 + 2.0 * CROP_MARGIN)
    x, y = width * (1.0 - share) / 2.0, height * (1.0 - share) / 2.0
    return Box(x, y, width - x, height - y)


def object_numbers(crops: CropSet) -> NDArray[np.int64]:
    """Return a number (N,) for each crop, the same for all of one object and no other."""
    numbers: NDArray[np.int64] = crops.scenes.astype(np.int64) * _OBJECTS_OF_A_SCENE
    return numbers + crops.objects


def learned(crops: CropSet) -> CropSet:
    """Return the crops of scenes that are learned from."""
    return crops.rows(~np.isin(_places(crops), (*_FITTED, *_JUDGED)))


def fitted_on(crops: CropSet) -> CropSet:
    """Return the crops of scenes that thresholds are fitted on."""
    return crops.rows(np.isin(_places(crops), _FITTED))


def judged(crops: CropSet) -> CropSet:
    """Return the crops of scenes that only judge."""
    return crops.rows(np.isin(_places(crops), _JUDGED))


def _places(crops: CropSet) -> NDArray[np.int32]:
    """Return the place (N,) of each crop's scene in its ten, so that each scenario has all."""
    places: NDArray[np.int32] = (crops.scenes + crops.scenes // _SCENARIOS) % _EVERY
    return places


def _file(folder: Path, first: int) -> Path:
    return folder / f'crops_{first:05d}.npz'


def _write_group(
    folder: Path, first: int, scenes: Sequence[PlannedFlight], on_share: OnShare
) -> None:
    seen: list[SeenCrop] = []
    for place, scene in enumerate(scenes):
        seen += _crops_of(scene, first + place)
        on_share((place + 1) / len(scenes))
    content = io.BytesIO()
    np.savez(content, **crop_set(seen)._asdict())
    write_files(folder, {_file(folder, first).name: content.getvalue()})


def _crops_of(scene: PlannedFlight, number: int) -> Iterator[SeenCrop]:
    world = build_world(scene.scenario, scene.seed, scene.seconds)
    camera = CameraSimulator(world)
    looks = looks_of(world.movers)
    light = LIGHTS.index(find_scenario(scene.scenario).light)
    for instant in instants(scene)[::2]:
        picture = camera.picture(instant)
        raw = np.frombuffer(as_jpeg(picture.image), np.uint8)
        image = np.asarray(cv2.imdecode(raw, cv2.IMREAD_COLOR), np.uint8)
        for item in picture.objects:
            box = item.box
            if box is None or box.height < LEAST_HEIGHT or item.visibility < LEAST_VISIBILITY:
                continue
            facts = facts_of(looks[item.id])
            yield SeenCrop(kept_crop(image, box), facts, box.height, light, number, item.id)
