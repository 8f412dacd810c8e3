"""Samples for the rivals from runs of encoded flights.

For gating and model selection whole flights are run with choices drawn at random: what is seen
depends on what was chosen before. For imputation, pictures are taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.cached_networks import CachedNetworks
from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_lab.policies.imputation import (
    LEAST_SCORE,
    PERSON_FIELDS,
    displacement,
    person_features,
)
from mmedge_lab.policies.policy_features import (
    POLICY_FIELDS,
    partners,
    policy_features,
    strong_detections,
)
from mmedge_lab.policies.policy_run import PolicyRun, run_policy
from mmedge_lab.policies.schedule import SAMPLE
from mmedge_lab.policies.scheduled_replay import StoredFeatures
from mmedge_lab.policies.steering import Facts, Plugins
from mmedge_lab.policies.trained_rivals import GATING, SELECTION, Choices
from mmedge_lab.training.rivals.samples import (
    GatingSamples,
    ImputationSamples,
    SelectionSamples,
)
from mmedge_ros.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    Decision,
    FloatArray,
    ModalityConfiguration,
    UnitFeatures,
)
from mmedge_ros.records.ground_truth import GroundTruth
from mmedge_ros.report.accuracy_samples import picture_size
from mmedge_ros.report.truth_matching import match_boxes, person_boxes
from mmedge_ros.skipping.box_loss import boxes_at
from mmedge_ros.tracking.data_association import assign, intersection_over_union

# How often the camera rests in a run, by chance: from now and then to nearly always.
RESTING_SHARES = (0.25, 0.5, 0.8)
# By how much a window's quality may fall without being called worse.
TOLERANCE = 0.02
# Below this two boxes are not taken to mean the same.
_EQUAL_IOU = 0.7
_SELECTION_RUNS = 2
# Pictures between those that are ready: all, every second or third where encoders do not keep up.
_STEPS = (1, 2, 3)
# How many pictures the missing one is ahead of the newest that is ready.
_LEADS = (1, 2, 3, 4)
_PICTURES = 3


@dataclass
class AtRandom:
    """Chooses by chance, and keeps the features and the place of its choice in each window.

    It is needed for one flight: the first question, before there is anything, is not kept.
    Before any picture is ready it sees None and chooses the first.
    """

    configurations: Sequence[Configuration]
    shares: Sequence[float]
    random: np.random.Generator
    levels: tuple[str, ...]
    features: list[FloatArray | None] = field(default_factory=list)
    chose: list[int] = field(default_factory=list)

    def configuration(self, facts: Facts) -> Configuration:
        """Return one of the configurations."""
        if facts.current is None:
            return self.configurations[0]
        place = int(self.random.choice(len(self.configurations), p=self.shares))
        is_blind = not facts.features.get(CAMERA)
        place = 0 if is_blind else place
        self.features.append(None if is_blind else policy_features(facts, self.levels))
        self.chose.append(place)
        return self.configurations[place]


@dataclass(frozen=True)
class WindowRuns:
    """Runs of one encoded flight, each window alone and unloaded.

    ``networks`` are the bundle's fusion networks, shared by all runs; ``number`` is
    that of the flight.
    """

    flight: EncodedFlight
    truth: GroundTruth
    bundle: BundleUnderTest
    networks: CachedNetworks | None
    choices: Choices
    number: int

    def gating(self) -> GatingSamples:
        """Let the camera rest at random, and compare with what is decided if it never does."""
        never = AtRandom(self._answers, (1.0, 0.0), np.random.default_rng(0), self.choices.levels)
        reference = self._decided(GATING, Plugins(modality_gating=never))
        rows: list[tuple[FloatArray, float, bool]] = []
        for place, share in enumerate(RESTING_SHARES):
            random = np.random.default_rng((self.number, place))
            chance = AtRandom(self._answers, (1.0 - share, share), random, self.choices.levels)
            run = self._run(GATING, Plugins(modality_gating=chance))
            size = picture_size(run.record)
            for features, chose, decision in zip(
                chance.features, chance.chose, run.record.decisions, strict=True
            ):
                full = reference.get(decision.window_end_ns)
                if features is None or not chose or full is None:
                    continue
                worse = self._quality(full, size) - self._quality(decision, size)
                if np.isfinite(worse):
                    rows.append((features, worse, _are_equal(decision, full, size)))
        worse_by = np.array([row[1] for row in rows], np.float64)
        agrees = np.array([row[2] for row in rows], np.bool_)
        return GatingSamples(
            _stacked([row[0] for row in rows]),
            agrees | (worse_by <= TOLERANCE),
            worse_by,
            agrees,
            np.full(len(rows), self.number, np.int64),
        )

    def selection(self) -> SelectionSamples:
        """Run with each level, and with levels at random to see what the features are then."""
        quality: dict[int, list[float]] = {}
        for configuration in self.choices.by_level:
            fixed = AtRandom((configuration,), (1.0,), np.random.default_rng(0), ())
            run = self._run(SELECTION, Plugins(model_selection=fixed))
            size = picture_size(run.record)
            for decision in run.record.decisions:
                known = quality.setdefault(decision.window_end_ns, [])
                known.append(self._quality(decision, size))
        ends = sorted(end_ns for end_ns, row in quality.items() if len(row) == self._levels)
        around = smoothed(np.array([quality[end_ns] for end_ns in ends]).reshape(-1, self._levels))
        by_end = dict(zip(ends, around, strict=True))
        features: list[FloatArray] = []
        rows: list[FloatArray] = []
        for place in range(_SELECTION_RUNS):
            random = np.random.default_rng((self.number, 100 + place))
            even = [1.0 / self._levels] * self._levels
            chance = AtRandom(self.choices.by_level, even, random, self.choices.levels)
            run = self._run(SELECTION, Plugins(model_selection=chance))
            for what, decision in zip(chance.features, run.record.decisions, strict=True):
                known_row = by_end.get(decision.window_end_ns)
                if what is None or known_row is None or not np.isfinite(known_row).all():
                    continue
                features.append(what)
                rows.append(known_row)
        return SelectionSamples(
            _stacked(features),
            np.array(rows, np.float64).reshape(-1, self._levels),
            np.full(len(rows), self.number, np.int64),
        )

    @property
    def _levels(self) -> int:
        return len(self.choices.by_level)

    @property
    def _answers(self) -> tuple[Configuration, Configuration]:
        return self.choices.by_level[-1], self.choices.resting

    def _run(self, policy: str, plugins: Plugins) -> PolicyRun:
        return run_policy(
            policy,
            self.flight,
            self.bundle,
            protocol=SAMPLE,
            plugins=plugins,
            networks=self.networks,
        )

    def _decided(self, policy: str, plugins: Plugins) -> dict[int, Decision]:
        return {d.window_end_ns: d for d in self._run(policy, plugins).record.decisions}

    def _quality(self, decision: Decision, size: tuple[int, int]) -> float:
        return window_quality(decision, self.truth, size)


def _stacked(rows: Sequence[FloatArray]) -> FloatArray:
    return np.array(rows, np.float64).reshape(-1, len(POLICY_FIELDS))


def window_quality(
    decision: Decision, truth: GroundTruth, size: tuple[int, int] = (0, 0)
) -> float:
    """Return the quality of a decision at its window's end, 0..1; NaN without a truth.

    It is the sum of the overlaps (IoU) of the people who are visible, divided by their number
    and that of the wrong boxes; 1 without people and boxes.

    :param size: width and height of the picture, to which boxes are cut
    """
    end_ns = decision.window_end_ns
    frame = truth.frame_at(end_ns)
    if frame is None:
        return float('nan')
    elapsed = (end_ns - decision.state_ns) / NS_PER_S
    match = match_boxes(frame, person_boxes(decision.tracks, elapsed, size)[1])
    count = len(match.overlaps) + match.false
    return float(match.overlaps.sum()) / count if count else 1.0


def smoothed(values: FloatArray, reach: int = 2) -> FloatArray:
    """Return means (N, ...) over a row and so many before and after it; NaN are left out.

    A single window depends too much on people just detected or lost.
    """
    means = np.full(values.shape, np.nan)
    for place in range(len(values)):
        near = values[max(place - reach, 0) : place + reach + 1]
        known = np.isfinite(near)
        total = np.where(known, near, 0.0).sum(axis=0)
        count = known.sum(axis=0)
        means[place] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def picture_samples(
    flight: EncodedFlight, number: int, level: str, window_ns: int, seed: int
) -> ImputationSamples:
    """Take away each picture of a flight in turn, with one step and one lead drawn for it.

    :param number: of the flight
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
    rows: list[tuple[FloatArray, bool, FloatArray, FloatArray, FloatArray]] = []
    for place, missing in enumerate(pictures):
        lead, step = int(random.choice(_LEADS)), int(random.choice(_STEPS))
        places = [place - lead - step * back for back in range(_PICTURES)]
        begin_ns = missing.stamp_ns - window_ns
        ready = [pictures[p] for p in reversed(places) if p >= 0]
        ready = [unit for unit in ready if unit.stamp_ns > begin_ns]
        recent = [s for s in scans if begin_ns < s.stamp_ns <= missing.stamp_ns]
        if ready:
            rows += _rows(missing, ready, recent)
    before, present, moved, boxes, truths = zip(*rows, strict=True) if rows else [()] * 5
    return ImputationSamples(
        np.array(before, np.float64).reshape(-1, len(PERSON_FIELDS)),
        np.array(present, np.bool_),
        np.array(moved, np.float64).reshape(-1, 4),
        np.array(boxes, np.float64).reshape(-1, 4),
        np.array(truths, np.float64).reshape(-1, 4),
        np.full(len(rows), number, np.int64),
    )


def _rows(
    missing: UnitFeatures, ready: Sequence[UnitFeatures], scans: Sequence[UnitFeatures]
) -> list[tuple[FloatArray, bool, FloatArray, FloatArray, FloatArray]]:
    people, inputs = person_features(missing.stamp_ns, ready, scans)
    there = [d.box for d in strong_detections(missing, LEAST_SCORE)]
    boxes = [person.box for person in people]
    rows = []
    nothing = np.zeros(4)
    for row, box, place in zip(inputs, boxes, partners(boxes, there), strict=True):
        if place is None:
            rows.append((row, False, nothing, np.array(box), nothing))
        else:
            new = there[place]
            moved = np.array(displacement(box, new))
            rows.append((row, True, moved, np.array(box), np.array(new)))
    return rows


def _are_equal(one: Decision, other: Decision, size: tuple[int, int]) -> bool:
    """Whether both show the same people at the same places at the end of their window."""
    at_ns = one.window_end_ns
    boxes = [boxes_at(decision, at_ns, size) for decision in (one, other)]
    overlap = intersection_over_union(*boxes)
    cost = np.where(overlap >= _EQUAL_IOU, 1.0 - overlap, np.inf)
    return len(boxes[0]) == len(boxes[1]) == len(assign(cost).pairs)
