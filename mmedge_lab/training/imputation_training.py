"""Trains the rival that imputes: a network that makes up the picture that is not ready.

Samples are pictures of recorded flights, each taken away in turn: of everybody in those before it
the network learns whether they are in the missing one, and how far they have moved there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_under_test import BundleUnderTest, open_bundle
from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_lab.judging.judged_flight import encoded_with_truth
from mmedge_lab.policies.imputation import (
    LEAST_SCORE,
    PERSON_FIELDS,
    TrainedImputer,
    displacement,
    person_features,
)
from mmedge_lab.policies.policy_features import partners, strong_detections
from mmedge_lab.policies.policy_run import levels_needed
from mmedge_lab.policies.scheduled_replay import StoredFeatures
from mmedge_lab.policies.settings import STATED
from mmedge_lab.policies.steering import Plugins
from mmedge_lab.policies.trained_rivals import (
    FOLDER,
    bundle_rivals,
    encoders_digest,
    write_rivals,
)
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.checkpoint import work_beside
from mmedge_lab.training.dense_training import (
    DenseSettings,
    fit_network,
    log_odds,
    present_and_moved,
)
from mmedge_lab.training.flight_works import Arrays, FlightArrays
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    FloatArray,
    ModalityConfiguration,
    UnitFeatures,
)
from mmedge_ros.core.run_record import software_identity
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.replay.recording import Recording

# Pictures between those that are ready: all, every second or third where encoders do not keep up.
_STEPS = (1, 2, 3)
# How many pictures the missing one is ahead of the newest that is ready.
_LEADS = (1, 2, 3, 4)
_PICTURES = 3
_LEARNED = 'learned from'


class ImputationSamples(NamedTuple):
    """People in pictures before a missing one: inputs (N, F), and what became of them.

    ``found`` (N,) is whether they are in the missing picture, ``moved`` (N, 4) how far they
    moved there, as `displacement` has it.
    """

    before: FloatArray
    found: NDArray[np.bool_]
    moved: FloatArray


def picture_samples(
    flight: EncodedFlight, level: str, window_ns: int, seed: int
) -> ImputationSamples:
    """Take away each picture of a flight in turn, with one step and one lead drawn for it.

    :param level: of the camera
    :param window_ns: how far back units are known
    """
    stored = StoredFeatures(flight)

    def encoded(modality: str, of_level: str) -> list[UnitFeatures]:
        part = ModalityConfiguration(modality, 0.0, of_level)
        units = [
            stored.of((own, sequence), part) for own, sequence in stored.units if own == modality
        ]
        return sorted((unit for unit in units if unit is not None), key=lambda u: u.stamp_ns)

    levels = flight.levels[RADAR]
    pictures, scans = encoded(CAMERA, level), encoded(RADAR, levels[-1] if levels else '')
    random = np.random.default_rng(seed)
    rows: list[tuple[FloatArray, bool, FloatArray]] = []
    for place, absent in enumerate(pictures):
        lead, step = int(random.choice(_LEADS)), int(random.choice(_STEPS))
        places = [place - lead - step * back for back in range(_PICTURES)]
        begin_ns = absent.stamp_ns - window_ns
        ready = [pictures[p] for p in reversed(places) if p >= 0]
        ready = [unit for unit in ready if unit.stamp_ns > begin_ns]
        recent = [s for s in scans if begin_ns < s.stamp_ns <= absent.stamp_ns]
        if ready:
            rows += _rows(absent, ready, recent)
    before, found, moved = zip(*rows, strict=True) if rows else [()] * 3
    return ImputationSamples(
        np.array(before, np.float64).reshape(-1, len(PERSON_FIELDS)),
        np.array(found, np.bool_),
        np.array(moved, np.float64).reshape(-1, 4),
    )


def _rows(
    absent: UnitFeatures, ready: Sequence[UnitFeatures], scans: Sequence[UnitFeatures]
) -> list[tuple[FloatArray, bool, FloatArray]]:
    people, inputs = person_features(absent.stamp_ns, ready, scans)
    there = [d.box for d in strong_detections(absent, LEAST_SCORE)]
    boxes = [person.box for person in people]
    rows = []
    for row, box, place in zip(inputs, boxes, partners(boxes, there), strict=True):
        moved = displacement(box, box if place is None else there[place])
        rows.append((row, place is not None, np.array(moved)))
    return rows


def train_imputer(
    samples: ImputationSamples, flights: NDArray[np.int64], settings: DenseSettings
) -> tuple[TrainedImputer, dict[str, Any]]:
    """Train the network; the same samples and settings give the same one.

    :param flights: (N,) number of the flight of each sample
    :return: the imputer, and what is known of its training
    :raises TrainingError: where there is too little to learn from
    """
    if not samples.found.any():
        raise TrainingError(
            'no person is seen in two pictures of the set; use flights with people that the '
            'bundle detects'
        )
    # Robust against the few that are matched with another person.
    scale = np.quantile(np.abs(samples.moved[samples.found]), 0.68, axis=0)
    scale = np.clip(scale, 1e-3, 1.0)
    fit = fit_network(
        samples.before,
        flights,
        present_and_moved(samples.found, samples.moved / scale),
        lambda rows: np.array([log_odds(samples.found[rows]), 0.0, 0.0, 0.0, 0.0]),
        settings,
    )
    facts = {'samples': len(flights), 'flights': len(np.unique(flights)), **fit.facts()}
    return TrainedImputer(fit.network, scale), facts


def _collect(bundle: BundleUnderTest, path: Path, number: int, on_share: OnShare) -> Arrays:
    needed = levels_needed(bundle)
    with Recording(path) as recording:
        flight = encoded_with_truth(recording, bundle.encoders(), needed, on_share)
    window_ns = round(WindowParameters().window * NS_PER_S)
    return picture_samples(flight, needed[CAMERA][-1], window_ns, number)._asdict()


def fit_imputer(
    folder: Path, flights: Sequence[Path], jobs: int, report: Report
) -> dict[str, Any]:
    """Train the imputer for a bundle and write it into that; returns what is known of it.

    The samples of each flight are kept in a folder beside the bundle until then.

    :param jobs: processes to use; 0 for one per processor
    :raises TrainingError: if it cannot be trained with these flights
    :raises EvaluationError: if it cannot be written
    :raises EncodingError: if the bundle cannot be used
    """
    bundle = open_bundle(folder, STATED)
    made_from = f'{bundle.digest} {encoders_digest(folder)} {PERSON_FIELDS}'
    collected = FlightArrays(work_beside(folder), made_from, {_LEARNED: flights}, jobs)
    arrays = collected.of(_LEARNED, partial(_collect, bundle), report)
    parts = [ImputationSamples(**of) for of in arrays.values()]
    numbers = np.repeat(np.arange(len(parts)), [len(part.found) for part in parts])
    samples = ImputationSamples(*map(np.concatenate, zip(*parts, strict=True)))
    imputer, facts = train_imputer(samples, numbers, DenseSettings(learning_rate=0.001, epochs=60))
    content = {
        'software': software_identity(folder),
        'training': {
            'set': ', '.join(dict.fromkeys(flight.parent.name for flight in flights)),
            'imputation': facts,
        },
    }
    try:
        others = bundle_rivals(folder).plugins
    except EvaluationError:  # damaged, or of other encoders
        others = Plugins()
    write_rivals(folder / FOLDER, folder, replace(others, imputation=imputer), content)
    collected.remove()
    return facts
