"""Makes a bundle whose stages have the precision that pays on this device."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.judging.bundle_under_test import open_bundle
from mmedge_lab.rivals.nanomind.recorded_stages import Brick, fly, recorded_bricks, true_crops
from mmedge_lab.rivals.nanomind.stage_precision import FP32, Candidate, best, candidates
from mmedge_lab.training import Report
from mmedge_lab.training.bundle_files import (
    bundle_copy,
    file_entry,
    require_free,
    write_manifest,
)
from mmedge_lab.training.detector_evaluation import evaluate_detector
from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.encoding.bricks import FUSION, RECOGNISER
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.encoding.crops import crop_input
from mmedge_ros.encoding.onnx_session import open_session
from mmedge_ros.encoding.tapped_classifier import open_classifier
from mmedge_ros.monitoring.machine import machine_description

# Accuracy may fall by so much: half a point.
LOSS = 0.005
_PICTURES, _CROPS = 600, 60
FIGURES = {
    CAMERA: 'AP50 of people',
    RADAR: 'streaming mean IoU, fused',
    FUSION: 'streaming mean IoU, fused',
    RECOGNISER: 'labels that are right',
}


@dataclass
class BrickResult:
    """A brick: what was measured of each stage, what was chosen, and what that is worth.

    ``before`` and ``after`` are its figure of `FIGURES`; ``notes`` say what was given up.
    """

    brick: Brick
    measured: list[list[Candidate]]
    chosen: list[Candidate]
    before: float = float('nan')
    after: float = float('nan')
    notes: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.brick.name.partition('.')[0]

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
            for stage, of, kept in zip(self.brick.stages, self.measured, self.chosen, strict=True)
        ]
        return {
            'brick': self.brick.name,
            'figure': FIGURES[self.kind],
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
    # A device that is not there is said before flights are encoded.
    open_session(bundle.camera_stages()[0], 1, device)
    report(0.0, 'encoding flights')
    bricks = recorded_bricks(bundle, open_bundle(folder, NOMINAL), flights)
    results = []
    with tempfile.TemporaryDirectory(prefix='mmedge_') as scratch:
        made = Path(scratch)
        for number, brick in enumerate(bricks):
            report(0.1 + 0.8 * number / len(bricks), f'measuring {brick.name}')
            measured = [candidates(stage, made, device) for stage in brick.stages]
            result = BrickResult(brick, measured, [best(of) for of in measured])
            if result.is_changed:
                _keep_accuracy(result, folder, made / 'trial', flights)
            results.append(result)
            for stage in brick.stages:
                stage.fed.clear()
        report(0.95, 'writing the bundle')
        with bundle_copy(folder, out) as part:
            replace_files(part, results)
        load_bundle(out)
    return {
        'bundle': folder.name,
        'device': device,
        'machine': machine_description(),
        'flights': [flight.name for flight in flights],
        'bricks': [result.as_plain() for result in results],
    }


def _keep_accuracy(
    result: BrickResult, folder: Path, trial: Path, flights: Sequence[Path]
) -> None:
    def figure(chosen: BrickResult | None) -> float:
        shutil.rmtree(trial, ignore_errors=True)
        shutil.copytree(folder, trial)
        replace_files(trial, [chosen] if chosen else [])
        return _JUDGES[result.kind](trial, result.brick.name, flights)

    give_up_stages(result, figure)


def give_up_stages(result: BrickResult, figure: Callable[[BrickResult | None], float]) -> None:
    """Give up stages, the one that is most off first, until the brick sees as well as before.

    :param figure: what the brick is worth with what is chosen; with None in full precision
    """
    result.before = result.after = figure(None)
    while result.is_changed:
        result.after = figure(result)
        if result.after >= result.before - LOSS:
            return
        worst = max(
            (n for n, one in enumerate(result.chosen) if one.precision != FP32),
            key=lambda n: result.chosen[n].error,
        )
        given_up = result.chosen[worst]
        result.notes.append(
            f'{result.brick.stages[worst].file.path.name} stays in {FP32}: with '
            f'{given_up.precision} {result.after:.4f} in place of {result.before:.4f}'
        )
        result.chosen[worst] = result.measured[worst][0]
        result.after = result.before


def replace_files(folder: Path, results: Sequence[BrickResult]) -> None:
    """Put chosen files into a bundle, in place of the ones they were made of."""
    content = copy.deepcopy(dict(load_bundle(folder).content))
    for result in results:
        for stage, kept in zip(result.brick.stages, result.chosen, strict=True):
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


def _camera_figure(folder: Path, brick: str, flights: Sequence[Path]) -> float:
    return evaluate_detector(folder, flights, _PICTURES, brick.partition('.')[2]).map50


def _fused_figure(folder: Path, brick: str, flights: Sequence[Path]) -> float:
    under_test = open_bundle(folder, NOMINAL)
    level = brick.partition('.')[2]
    seen = [fly(flight, under_test, under_test.networks(), level) for flight in flights]
    return float(np.mean([one.stream.mean_iou for one in seen]))


def _label_figure(folder: Path, _: str, flights: Sequence[Path]) -> float:
    description = describe_classifier(folder)
    assert description is not None  # it is the brick that is judged
    classifier = open_classifier(description).classifier
    right = []
    for picture, box, label in true_crops(flights, _CROPS):
        shares, _logits = classifier.classify(crop_input(picture, box, description.form))
        said = description.classes[int(shares.argmax())].split(' ', maxsplit=1)[0]
        right.append(said == label)
    return float(np.mean(right))


_JUDGES: Mapping[str, Callable[[Path, str, Sequence[Path]], float]] = {
    CAMERA: _camera_figure,
    RADAR: _fused_figure,
    FUSION: _fused_figure,
    RECOGNISER: _label_figure,
}


def _figure(value: float) -> float | None:
    return round(value, 5) if np.isfinite(value) else None
