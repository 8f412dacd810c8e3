"""Trains the three rivals from samples, and judges each on samples that it was not trained on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mmedge_lab.policies.dense_network import logistic
from mmedge_lab.policies.imputation import PERSON_FIELDS, TrainedImputer, moved_boxes
from mmedge_lab.policies.steering import Plugins
from mmedge_lab.policies.trained_choosers import TrainedGate, TrainedSelector, cheapest_within
from mmedge_lab.policies.trained_rivals import Choices, trained_gate
from mmedge_lab.training import TrainingError
from mmedge_lab.training.dense_training import (
    Fit,
    FitSettings,
    Rows,
    fit_network,
    log_odds,
    present_and_moved,
    squared,
    yes_or_no,
)
from mmedge_lab.training.rivals.samples import (
    FlightSamples,
    GatingSamples,
    ImputationSamples,
    SelectionSamples,
)
from mmedge_ros.data_types import Box, FloatArray
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.parameter import parameter

Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class RivalSettings:
    """How rivals are trained, and where they draw the line.

    ``windows`` is for gating and selection, ``pictures`` for imputation, which has far more
    samples. ``threshold`` and ``margin`` were chosen by the streaming accuracy on flights of the
    train set, where all of the processor is there.
    """

    windows: FitSettings = field(
        default_factory=lambda: FitSettings(hidden=16, dropout=0.3, learning_rate=0.001)
    )
    pictures: FitSettings = field(
        default_factory=lambda: FitSettings(learning_rate=0.001, epochs=60, folds=5)
    )
    threshold: float = parameter(
        0.5, 'the camera rests if that is no loss with this probability', '', 0.0, 1.0
    )
    margin: float = parameter(
        0.05, 'by how much the quality of a window may fall short of the best level', '', 0.0, 1.0
    )


class Trained(NamedTuple):
    """The rivals, and what is known of their training: plain values by rival."""

    plugins: Plugins
    facts: dict[str, dict[str, Any]]


def train_rivals(
    samples: FlightSamples, choices: Choices, settings: RivalSettings | None = None
) -> Trained:
    """Train gate, selector and imputer; the same samples and settings give the same ones.

    :raises TrainingError: where there is too little to learn from
    """
    p = settings or RivalSettings()
    gate, gate_facts = _gate(samples.gating, choices, p)
    selector, selector_facts = _selector(samples.selection, choices, p)
    imputer, imputer_facts = _imputer(samples.imputation, p)
    return Trained(
        Plugins(gate, selector, imputer),
        {
            'modality_gating': gate_facts,
            'model_selection': selector_facts,
            'imputation': imputer_facts,
        },
    )


def judge_rivals(
    plugins: Plugins, trained_on: FlightSamples, unseen: FlightSamples
) -> dict[str, dict[str, float]]:
    """Return how the rivals do on samples that they were not trained on, beside constants.

    :param trained_on: what the constants are chosen by
    """
    gate, selector, imputer = plugins.modality_gating, plugins.model_selection, plugins.imputation
    assert isinstance(gate, TrainedGate)
    assert isinstance(selector, TrainedSelector)
    assert isinstance(imputer, TrainedImputer)
    return {
        'modality_gating': judge_gate(gate, trained_on.gating, unseen.gating),
        'model_selection': judge_selector(selector, trained_on.selection, unseen.selection),
        'imputation': judge_imputer(imputer, trained_on.imputation, unseen.imputation),
    }


def judge_gate(gate: TrainedGate, known: GatingSamples, unseen: GatingSamples) -> dict[str, float]:
    """Return figures of a gate; ``rests`` is the share of windows, ``rests_worse`` of these."""
    probability = logistic(gate.network.outputs(unseen.seen)[:, 0])
    rests = probability >= gate.threshold
    usual = bool(known.no_loss.mean() >= 0.5)
    share = float(np.clip(known.no_loss.mean(), 1e-6, 1.0 - 1e-6))
    return {
        'samples': len(probability),
        'no_loss': _mean(unseen.no_loss),
        'auc': area_under_curve(probability, unseen.no_loss),
        'accuracy': _mean((probability >= 0.5) == unseen.no_loss),
        'accuracy_constant': _mean(unseen.no_loss == usual),
        'cross_entropy': _cross_entropy(probability, unseen.no_loss),
        'cross_entropy_constant': _cross_entropy(np.full(len(probability), share), unseen.no_loss),
        'rests': _mean(rests),
        'rests_worse': _mean(~unseen.no_loss[rests]),
        'quality_lost': _mean(unseen.worse * rests),
        'quality_lost_resting_always': _mean(unseen.worse),
    }


def judge_selector(
    selector: TrainedSelector, known: SelectionSamples, unseen: SelectionSamples
) -> dict[str, float]:
    """Return figures of a selector; quality is that of windows, around them."""
    right = _right_levels(unseen, selector.margin)
    shortfall = _shortfalls(unseen)
    predicted = selector.network.outputs(unseen.seen)
    chosen = cheapest_within(predicted, selector.margin)
    counts = np.bincount(_right_levels(known, selector.margin), minlength=len(selector.levels))
    usual = int(counts.argmax())
    mean = _shortfalls(known).mean(axis=0)
    error, spread = ((shortfall - predicted) ** 2).sum(), ((shortfall - mean) ** 2).sum()
    rows = np.arange(len(chosen))
    figures = {
        'samples': len(chosen),
        'accuracy': _mean(chosen == right),
        'accuracy_constant': _mean(right == usual),
        'r2_against_constant': 1.0 - float(error / spread) if spread > 0.0 else 0.0,
        'quality': _mean(unseen.quality[rows, chosen]),
        'quality_best': _mean(unseen.quality.max(axis=1)) if len(rows) else 0.0,
    }
    for place, level in enumerate(selector.levels):
        name = level or 'only'
        figures[f'quality_{name}'] = _mean(unseen.quality[:, place])
        figures[f'chosen_{name}'] = _mean(chosen == place)
        figures[f'right_{name}'] = _mean(right == place)
    return figures


def judge_imputer(
    imputer: TrainedImputer, known: ImputationSamples, unseen: ImputationSamples
) -> dict[str, float]:
    """Return figures of an imputer: the overlap (IoU) of made-up boxes with those in the picture.

    Beside it that of boxes that stay where they were, and that go on as they went.
    """
    outputs = imputer.network.outputs(unseen.before)
    probability = logistic(outputs[:, 0])
    usual = bool(known.found.mean() >= 0.5)
    first = PERSON_FIELDS.index('onward_right')
    onward = unseen.before[:, first : first + 4]
    there = unseen.found
    return {
        'samples': len(probability),
        'found': _mean(there),
        'auc': area_under_curve(probability, there),
        'accuracy': _mean((probability >= 0.5) == there),
        'accuracy_constant': _mean(there == usual),
        'iou': _overlaps(unseen, outputs[:, 1:] * imputer.scale),
        'iou_staying': _overlaps(unseen, np.zeros((len(there), 4))),
        'iou_going_on': _overlaps(unseen, onward),
    }


def area_under_curve(scores: FloatArray, labels: Marks) -> float:
    """Return the area under the receiver operating characteristic; 0.5 where labels are alike."""
    yes = int(labels.sum())
    no = len(labels) - yes
    if not yes or not no:
        return 0.5
    ranks = rankdata(scores)
    return float((ranks[labels].sum() - yes * (yes + 1) / 2.0) / (yes * no))


def _gate(
    samples: GatingSamples, choices: Choices, p: RivalSettings
) -> tuple[TrainedGate, dict[str, Any]]:
    if samples.no_loss.all() or not samples.no_loss.any():
        raise TrainingError(
            'whether the camera rested never made a difference, or always did; use flights with '
            'more happening in them'
        )
    loss = yes_or_no(samples.no_loss)

    def constant(rows: Rows) -> FloatArray:
        return np.array([log_odds(samples.no_loss[rows])])

    fit = fit_network(samples.seen, samples.flights, loss, constant, p.windows)
    gate = trained_gate(fit.network, p.threshold, choices)
    return gate, _facts(fit, samples.flights)


def _selector(
    samples: SelectionSamples, choices: Choices, p: RivalSettings
) -> tuple[TrainedSelector, dict[str, Any]]:
    targets = _shortfalls(samples)

    def constant(rows: Rows) -> FloatArray:
        return np.asarray(targets[rows].mean(axis=0))

    loss = squared(targets)
    fit = fit_network(samples.seen, samples.flights, loss, constant, p.windows)
    selector = TrainedSelector(fit.network, p.margin, choices.levels, choices.by_level)
    return selector, _facts(fit, samples.flights)


def _imputer(
    samples: ImputationSamples, p: RivalSettings
) -> tuple[TrainedImputer, dict[str, Any]]:
    if not samples.found.any():
        raise TrainingError(
            'no person is seen in two pictures of the set; use flights with people that the '
            'bundle detects'
        )
    # Robust against the few that are matched with another person.
    scale = np.quantile(np.abs(samples.moved[samples.found]), 0.68, axis=0)
    scale = np.clip(scale, 1e-3, 1.0)
    loss = present_and_moved(samples.found, samples.moved / scale)

    def constant(rows: Rows) -> FloatArray:
        return np.array([log_odds(samples.found[rows]), 0.0, 0.0, 0.0, 0.0])

    fit = fit_network(samples.before, samples.flights, loss, constant, p.pictures)
    return TrainedImputer(fit.network, scale), _facts(fit, samples.flights)


def _facts(fit: Fit, flights: NDArray[np.int64]) -> dict[str, Any]:
    return {
        'samples': len(flights),
        'flights': len(np.unique(flights)),
        'epochs': fit.epochs,
        'held_out_loss': round(fit.held_out_loss, 6),
        'constant_loss': round(fit.constant_loss, 6),
    }


def _shortfalls(samples: SelectionSamples) -> FloatArray:
    return np.asarray(samples.quality.max(axis=1, keepdims=True) - samples.quality)


def _right_levels(samples: SelectionSamples, margin: float) -> NDArray[np.intp]:
    return np.asarray(cheapest_within(_shortfalls(samples), margin), np.intp)


def _overlaps(samples: ImputationSamples, displacements: FloatArray) -> float:
    there = np.flatnonzero(samples.found)
    if not len(there):
        return 0.0
    boxes = [Box(*row) for row in samples.boxes[there].tolist()]
    made = moved_boxes(boxes, displacements[there])
    true = [Box(*row) for row in samples.truths[there].tolist()]
    return float(np.mean([overlap(a, b) for a, b in zip(made, true, strict=True)]))


def _cross_entropy(probability: FloatArray, labels: Marks) -> float:
    sure = np.clip(np.where(labels, probability, 1.0 - probability), 1e-9, 1.0)
    return float(-np.log(sure).mean()) if len(sure) else 0.0


def _mean(values: NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
