"""What is benched: a classifier with taps, its semantic memory, and what it makes of the crops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.smtm.bench_crops import LabelledCrops, read_bench_crops
from mmedge_lab.rivals.smtm.kept_outputs import KeptOutputs, drifted, run_crops
from mmedge_lab.rivals.smtm.streams import DRIFT_LEVELS
from mmedge_lab.training import Report, part_of
from mmedge_lab.training.exit_thresholds import fit_exits
from mmedge_lab.training.semantic_centres import with_thresholds
from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding.classifier_description import SECTION, describe_classifier
from mmedge_ros.encoding.crops import CropForm
from mmedge_ros.encoding.tapped_classifier import TappedClassifier, open_classifier
from mmedge_ros.recurrence.semantic_memory import SemanticCentres, accumulated, whitened
from mmedge_ros.recurrence.stored_centres import read_centres

_TINY = 1e-9


@dataclass(frozen=True)
class Subject:
    """A classifier and its outputs.

    ``crops`` are the N crops that judge. ``kept`` and ``labels`` hold them once for each level of
    the drift, one level after another; ``fitted`` and ``fitted_labels`` are those that thresholds
    are fitted on. ``centres`` is None of a bundle without a semantic memory.
    """

    classifier: TappedClassifier
    form: CropForm
    crops: LabelledCrops
    kept: KeptOutputs
    labels: NDArray[np.int64]
    fitted: KeptOutputs
    fitted_labels: NDArray[np.int64]
    centres: SemanticCentres | None

    @property
    def has_heads(self) -> bool:
        """Whether a stage has a head of its own."""
        return any(head is not None for head in self.kept.heads)

    def centres_of(self, eps: float) -> SemanticCentres:
        """Return the semantic centres with thresholds of another error."""
        assert self.centres is not None
        held = self.fitted.vectors[: len(self.centres.centres)]
        labels, whole = self.fitted_labels.tolist(), self.fitted.whole.tolist()
        return with_thresholds(self.centres, held, labels, eps, whole)

    def heads_of(self, eps: float) -> tuple[float, ...]:
        """Return the thresholds of the heads for an error."""
        return fit_exits(self.fitted.heads, self.fitted.whole, self.fitted_labels, eps)


def open_subject(bundle: Path, folder: Path, most: int, report: Report) -> Subject:
    """Open the recogniser of a bundle and run all crops of a folder through it.

    :param most: so many crops of each class in each part; 0: all
    :raises EvaluationError: if the bundle has no recogniser, or the folder no crops for it
    :raises EncodingError: if the bundle cannot be used
    :raises RecurrenceError: if its semantic memory is not of this classifier
    :raises TrainingError: if crops cannot be read
    """
    description = describe_classifier(bundle)
    if description is None:
        raise EvaluationError(
            f'{bundle} has no {SECTION}; `mmedge lab train recogniser` makes one'
        )
    memorised = open_classifier(description)
    classifier, form = memorised.classifier, description.form
    centres = None if description.memory is None else read_centres(description.memory.verified())
    report(0.0, 'reading crops')
    found = read_bench_crops(folder, description, most)
    crops = found.judged
    levels = np.concatenate(
        [drifted(crops.crops, level / (DRIFT_LEVELS - 1)) for level in range(DRIFT_LEVELS)]
    )
    fitting, judging = part_of(report, 0.05, 0.3), part_of(report, 0.3, 1.0)
    fitted = run_crops(
        classifier, found.fitted_on.crops, form, lambda share: fitting(share, 'fitting crops')
    )
    if memorised.memory is not None:
        for layer in range(memorised.memory.layers):
            memorised.memory.checked(fitted.vectors[layer][0], layer)
    kept = run_crops(classifier, levels, form, lambda share: judging(share, 'judging crops'))
    return Subject(
        classifier,
        form,
        crops,
        kept,
        np.tile(crops.labels, DRIFT_LEVELS),
        fitted,
        found.fitted_on.labels,
        centres,
    )


def separability(subject: Subject) -> dict[str, list[float]]:
    """Return the share of right ones among all crops, were they left after each tap.

    By the nearest centre, whitened, of the tap alone (``single``) and of all taps so far
    (``cumulative``), by the similarity as the paper prints it (``printed``), and by the head
    (``head``, NaN without one).
    """
    count = len(subject.crops.labels)
    labels, kept = subject.crops.labels, subject.kept

    def right(scores: FloatArray) -> float:
        return float(np.mean(scores.argmax(axis=1) == labels))

    shares = {
        'head': [float('nan') if head is None else right(head[:count]) for head in kept.heads]
    }
    if subject.centres is None:
        return shares
    white, plain = [], []
    parts = zip(
        kept.vectors,
        subject.centres.centres,
        subject.centres.origins,
        subject.centres.whitening,
        strict=False,
    )
    for vectors, known, origin, whitening in parts:
        of_tap = vectors[:count]
        white.append(whitened(of_tap, origin, whitening) @ whitened(known, origin, whitening).T)
        plain.append(_unit(of_tap) @ _unit(known).T)
    so_far = range(1, len(white) + 1)
    return {
        'single': [right(scores) for scores in white],
        'cumulative': [right(accumulated(white[:taps])) for taps in so_far],
        'printed': [right(accumulated(plain[:taps])) for taps in so_far],
        **shares,
    }


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = vectors / np.maximum(lengths, _TINY)
    return unit
