"""Gives a trained classifier a semantic memory: stages, centres from pictures, and a bundle."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmedge_lab.training import Report, TrainingError, part_of
from mmedge_lab.training.bundle_files import (
    file_entry,
    finish_bundle,
    require_free,
    write_manifest,
)
from mmedge_lab.training.checkpoint import new_folder, work_beside
from mmedge_lab.training.classifier_graph import ClassifierGraph, open_graph
from mmedge_lab.training.classifier_taps import check_stages, write_stages
from mmedge_lab.training.cut_points import CutPoint, cut_points, evenly_spread
from mmedge_lab.training.labelled_pictures import (
    LabelledPictures,
    class_names,
    labelled_pictures,
)
from mmedge_lab.training.semantic_centres import fit_semantic_centres
from mmedge_lab.training.tap_figures import TapFigures, judged, pass_pictures
from mmedge_ros.encoding.classifier_description import FORMAT, SECTION
from mmedge_ros.encoding.crops import CropForm
from mmedge_ros.encoding.tapped_classifier import TappedClassifier
from mmedge_ros.recurrence.stored_centres import LARGEST_BYTES, centres_as_bytes

_MEMORY = f'{SECTION}.npz'


@dataclass(frozen=True)
class TapRequest:
    """What to make a bundle of.

    ``pictures`` is a folder with a folder for each class, ``labels`` a file with their names in
    the order of the outputs; ``size`` is width and height in px where the model leaves them open.
    ``mean``, ``deviation``, ``rgb`` and ``square`` are those of `CropForm`; ``error`` is the share
    of wrong recalls that thresholds allow, ``most`` how many pictures of a class are taken (0:
    all).
    """

    model: Path
    out: Path
    pictures: Path
    labels: Path | None = None
    taps: int = 4
    size: tuple[int, int] | None = None
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    deviation: tuple[float, float, float] = (0.229, 0.224, 0.225)
    rgb: bool = True
    square: bool = False
    error: float = 0.02
    most: int = 0


def make_tapped_bundle(request: TapRequest, report: Report) -> TapFigures:
    """Divide a classifier, fit its semantic memory, judge both, and put the bundle in its place.

    :raises TrainingError: if model or pictures do not suit, or the bundle cannot be written
    :raises EncodingError: if the model cannot be opened or run
    """
    out = request.out.absolute()
    _require_name(out)
    require_free(out)
    names = class_names(request.labels) if request.labels is not None else None
    report(0.0, 'reading the model')
    graph = open_graph(request.model, request.size)
    pictures = labelled_pictures(request.pictures, graph.classes, names, request.most)
    cuts = evenly_spread(cut_points(graph), request.taps)
    work = work_beside(out)
    try:
        part = new_folder(work) / out.name
        part.mkdir()
        figures = _written(request, graph, cuts, pictures, part, report)
        finish_bundle(part, out, math.inf)
    except OSError as err:
        raise TrainingError(
            f'{err.filename or work}: {err.strerror or err}; make room there and try again'
        ) from err
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return figures


def _written(
    request: TapRequest,
    graph: ClassifierGraph,
    cuts: Sequence[CutPoint],
    pictures: LabelledPictures,
    part: Path,
    report: Report,
) -> TapFigures:
    """Write all files of the bundle, and judge it as a flight would open it."""
    report(0.02, f'{len(cuts) + 1} stages')
    stages = write_stages(graph, cuts, part, SECTION)
    check_stages(graph, stages, part)
    form = CropForm(
        graph.size, request.mean, request.deviation, rgb=request.rgb, square=request.square
    )
    classifier = TappedClassifier(pictures.classes, stages)
    passed = pass_pictures(classifier, form, pictures, part_of(report, 0.05, 0.65))
    held = passed.held_out
    report(0.65, 'fitting centres')
    centres = fit_semantic_centres(
        [of_tap[~held] for of_tap in passed.vectors],
        passed.labels[~held].tolist(),
        [of_tap[held] for of_tap in passed.vectors],
        passed.labels[held].tolist(),
        request.error,
    )
    content = centres_as_bytes(centres)
    if len(content) > LARGEST_BYTES:
        raise TrainingError(
            f'the semantic memory would have {len(content) / 1e6:.0f} MB, a bundle may have '
            f'{LARGEST_BYTES / 1e6:.0f} (taps of {", ".join(str(c.channels) for c in cuts)} '
            'values); name fewer --taps'
        )
    (part / _MEMORY).write_bytes(content)
    section = _section(pictures.classes, form, stages, part / _MEMORY)
    write_manifest(part, request.out.absolute().name, {SECTION: section})
    return judged(part, form, cuts, passed, centres.thresholds, part_of(report, 0.7, 1.0))


def _section(
    classes: Sequence[str],
    form: CropForm,
    stages: Sequence[Path],
    memory: Path,
) -> dict[str, Any]:
    return {
        'format': FORMAT,
        'classes': list(classes),
        'input': {
            'size': list(form.size),
            'mean': list(form.mean),
            'deviation': list(form.deviation),
            'rgb': form.rgb,
            'margin': form.margin,
            'square': form.square,
        },
        'stages': [file_entry(stage) for stage in stages],
        'memory': file_entry(memory),
    }


def _require_name(out: Path) -> None:
    try:
        str(out).encode()
    except UnicodeEncodeError:
        raise TrainingError(
            f'--out {str(out)!r} is a name that is not UTF-8; use another'
        ) from None
