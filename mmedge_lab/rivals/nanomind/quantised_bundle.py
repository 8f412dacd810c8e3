"""Makes a bundle whose camera levels and recogniser are in the precision that pays here."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_lab.rivals.nanomind import QuantisationError
from mmedge_lab.rivals.nanomind.stage_precision import FP32, Candidate, Stage, best, candidates
from mmedge_lab.training import Report
from mmedge_lab.training.bundle_files import file_entry, new_bundle, require_free, write_manifest
from mmedge_lab.training.detector_evaluation import evaluate_detector, labelled_pictures
from mmedge_ros.core.data_types import CAMERA, Box
from mmedge_ros.encoding.bricks import RECOGNISER, brick_name
from mmedge_ros.encoding.bundle.model_bundle import ModelBundle, load_bundle, open_detector
from mmedge_ros.encoding.classifier_description import SECTION, describe_classifier
from mmedge_ros.encoding.crops import crop_input
from mmedge_ros.encoding.onnx_detector import OnnxDetector
from mmedge_ros.encoding.onnx_session import open_session
from mmedge_ros.encoding.tapped_classifier import open_classifier
from mmedge_ros.encoding.tapped_network import TappedNetwork
from mmedge_ros.monitoring.machine import machine_description
from mmedge_ros.sensing.camera.image import Picture

# Accuracy may fall by so much: half a point.
LOSS = 0.005
# Of each stage; more change nothing, and take memory: inputs of a first stage have 3.7 MB.
FEEDS = 24
_PICTURES, _CROPS = 600, 60
# Crops smaller than this (px) are not what a recogniser is asked of.
_LEAST_HEIGHT = 20.0
_FIGURES = {CAMERA: 'AP50 of people', RECOGNISER: 'labels that are right'}


@dataclass
class Brick:
    """A network in stages: what was measured of each, what was chosen, and what that is worth.

    ``before`` and ``after`` are AP50 of people for a camera level, and for the recogniser the
    share of right labels; ``notes`` say what was given up.
    """

    name: str
    stages: list[Stage]
    measured: list[list[Candidate]] = field(default_factory=list)
    chosen: list[Candidate] = field(default_factory=list)
    before: float = float('nan')
    after: float = float('nan')
    notes: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.name.partition('.')[0]

    @property
    def is_changed(self) -> bool:
        return any(one.precision != FP32 for one in self.chosen)

    @property
    def ratio(self) -> float:
        """Time of all stages as chosen, as a share of that in full precision."""
        full = sum(of[0].seconds for of in self.measured)
        return sum(one.seconds for one in self.chosen) / full

    def as_plain(self) -> dict[str, Any]:
        stages = [
            {
                'file': stage.file.path.name,
                'kept': kept.precision,
                **{f'{one.precision}_ms': _figure(1e3 * one.seconds) for one in of},
                **{f'{one.precision}_error': _figure(one.error) for one in of[1:]},
                **{f'{one.precision}_problem': one.problem for one in of if one.problem},
            }
            for stage, of, kept in zip(self.stages, self.measured, self.chosen, strict=True)
        ]
        return {
            'brick': self.name,
            'figure': _FIGURES[self.kind],
            'before': _figure(self.before),
            'after': _figure(self.after),
            'ratio': _figure(self.ratio),
            'stages': stages,
            'notes': self.notes,
        }


def quantise(
    folder: Path, out: Path, flights: Sequence[Path], device: str, report: Report
) -> dict[str, Any]:
    """Write a quantised copy of a bundle; return what was measured and chosen.

    :param flights: with ground truth; stages are calibrated and judged on them
    :raises EncodingError: if the bundle cannot be used
    :raises QuantisationError: if the flights do not suffice
    :raises TrainingError: if a flight has no truth, or ``out`` cannot be written
    """
    require_free(out)
    bundle = load_bundle(folder)
    # A device that is not there is said before flights are looked at.
    open_session(bundle.camera_stages()[0], 1, device)
    report(0.0, 'looking at flights')
    bricks = _recorded_bricks(bundle, flights)
    with tempfile.TemporaryDirectory(prefix='mmedge_') as scratch:
        made = Path(scratch)
        for number, brick in enumerate(bricks):
            report(0.1 + 0.8 * number / len(bricks), f'measuring {brick.name}')
            brick.measured = [candidates(stage, made, device) for stage in brick.stages]
            brick.chosen = [best(of) for of in brick.measured]
            if brick.is_changed:
                _keep_accuracy(brick, folder, made / 'trial', flights)
            for stage in brick.stages:
                stage.fed.clear()
        report(0.95, 'writing the bundle')
        with new_bundle(out, folder) as part:
            replace_files(part, bricks)
        load_bundle(out)
    return {
        'bundle': folder.name,
        'device': device,
        'machine': machine_description(),
        'flights': [flight.name for flight in flights],
        'bricks': [brick.as_plain() for brick in bricks],
    }


class _Recorder:
    """Stands for a session, and keeps some of what it is fed with."""

    def __init__(self, session: Any, stage: Stage) -> None:
        self._session = session
        self._stage = stage

    def run(self, names: Sequence[str], feeds: Mapping[str, Any]) -> Any:
        if len(self._stage.fed) < FEEDS:
            self._stage.fed.append({name: np.array(value) for name, value in feeds.items()})
        return self._session.run(names, feeds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def _recorded_bricks(bundle: ModelBundle, flights: Sequence[Path]) -> list[Brick]:
    """Return camera levels and recogniser with what their stages are fed with over flights."""
    bricks = []
    for level in bundle.levels:
        place, files = (CAMERA, 'levels', level), bundle.entries(level)
        stages = [Stage((*place, 'stages', n), file) for n, file in enumerate(files)]
        if len(files) == 1:
            stages = [Stage(place, files[0])]
        brick = Brick(brick_name(CAMERA, level), stages)
        detector = open_detector(bundle.folder, None, level)
        if not isinstance(detector, OnnxDetector):
            raise QuantisationError(f'{brick.name} is no network of ONNX Runtime')
        _record(detector.tapped, brick)
        for shown in labelled_pictures(flights, FEEDS):
            detector.detect(shown.image)
        bricks.append(brick)
    description = describe_classifier(bundle.folder)
    if description is not None:
        stages = [Stage((SECTION, 'stages', n), f) for n, f in enumerate(description.stages)]
        bricks.append(Brick(RECOGNISER, stages))
        classifier = open_classifier(description).classifier
        _record(classifier.network, bricks[-1])
        for picture, box, _ in _true_crops(flights, FEEDS)[:FEEDS]:
            classifier.classify(crop_input(picture, box, description.form))
    for brick in bricks:
        for stage in brick.stages:
            if len(stage.fed) < FEEDS // 2:
                raise QuantisationError(
                    f'{brick.name}: {stage.file.path.name} ran {len(stage.fed)} times in these '
                    f'flights, {FEEDS // 2} are needed; name longer flights, or more of them'
                )
    return bricks


def _record(network: TappedNetwork, brick: Brick) -> None:
    pairs = zip(network.sessions, brick.stages, strict=True)
    network.sessions = [_Recorder(session, stage) for session, stage in pairs]


def _true_crops(flights: Sequence[Path], count: int) -> list[tuple[Picture, Box, str]]:
    """Return pictures with the box and the label of each true object that is large enough."""
    return [
        (one.image, Box(*map(float, box)), str(label))
        for one in labelled_pictures(flights, count)
        for box, label in zip(one.truth.boxes, one.truth.labels, strict=True)
        # Boxes outside of the picture are NaN.
        if box[3] - box[1] >= _LEAST_HEIGHT
    ]


def _keep_accuracy(brick: Brick, folder: Path, trial: Path, flights: Sequence[Path]) -> None:
    def figure(chosen: Brick | None) -> float:
        shutil.rmtree(trial, ignore_errors=True)
        shutil.copytree(folder, trial)
        replace_files(trial, [chosen] if chosen else [])
        if brick.kind == CAMERA:
            level = brick.name.partition('.')[2]
            return evaluate_detector(trial, flights, _PICTURES, level).map50
        return _right_labels(trial, flights)

    give_up_stages(brick, figure)


def give_up_stages(brick: Brick, figure: Callable[[Brick | None], float]) -> None:
    """Give up stages, the one that is most off first, until the brick sees as well as before.

    :param figure: what the brick is worth with what is chosen; with None in full precision
    """
    brick.before = brick.after = figure(None)
    while brick.is_changed:
        brick.after = figure(brick)
        if brick.after >= brick.before - LOSS:
            return
        worst = max(
            (n for n, one in enumerate(brick.chosen) if one.precision != FP32),
            key=lambda n: brick.chosen[n].error,
        )
        brick.notes.append(
            f'{brick.stages[worst].file.path.name} stays in {FP32}: with '
            f'{brick.chosen[worst].precision} {brick.after:.4f} in place of {brick.before:.4f}'
        )
        brick.chosen[worst] = brick.measured[worst][0]
        brick.after = brick.before


def replace_files(folder: Path, bricks: Sequence[Brick]) -> None:
    """Put chosen files into a bundle, in place of the ones they were made of."""
    content = copy.deepcopy(dict(load_bundle(folder).content))
    for brick in bricks:
        for stage, kept in zip(brick.stages, brick.chosen, strict=True):
            if kept.precision == FP32:
                continue
            target = folder / kept.path.name
            shutil.copyfile(kept.path, target)
            entry: Any = content
            for key in stage.place:
                entry = entry[key]
            entry.update({**file_entry(target), 'precision': kept.precision})
            (folder / stage.file.path.name).unlink(missing_ok=True)
    write_manifest(folder, str(content.pop('name')), content)


def _right_labels(folder: Path, flights: Sequence[Path]) -> float:
    description = describe_classifier(folder)
    assert description is not None  # it is the brick that is judged
    classifier = open_classifier(description).classifier
    right = []
    for picture, box, label in _true_crops(flights, _CROPS):
        shares, _logits = classifier.classify(crop_input(picture, box, description.form))
        right.append(description.classes[int(shares.argmax())].split(' ', maxsplit=1)[0] == label)
    return float(np.mean(right))


def _figure(value: float) -> float | None:
    return round(value, 5) if np.isfinite(value) else None
