"""Decisions before their windows end, and what may never come of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from fake_fusion_networks import FakeFusionNetworks
from hand_made_gates import Answering, always
from hand_made_maps import Cell, camera_grid_with
from hand_made_pictures import usual_pictures
from hand_made_units import LENS, MOUNTS, MS, at, features, receipt, returns, unit
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    Box,
    Decision,
    Detection,
    SkipDecision,
    Unit,
    UnitFeatures,
    UnitKey,
    UnitOutcome,
)
from mmedge_ros.encoding.feature_grid import RADAR_GRID
from mmedge_ros.encoding.picture_drift import PictureDrift
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.window_assembler import ClosedWindow
from mmedge_ros.sensing.capture_control import Admission, CaptureControl
from mmedge_ros.tracking.map_decoding import DecodingParameters
from mmedge_ros.windows.audits import AuditParameters
from mmedge_ros.windows.early_decision import GatedDecision, Gating
from mmedge_ros.windows.feature_fusion import FeatureFusion
from mmedge_ros.windows.skip_control import SkipControl, SkipParameters

PERIODS = {CAMERA: round(33.3 * MS), RADAR: 50 * MS}
TAKEN = {CAMERA: 12.0, RADAR: 1.0}
BOX = Box(100.0, 165.0, 150.0, 315.0)


def boxes_of(people: int) -> list[Box]:
    return [Box(BOX.x0 + 120 * n, BOX.y0, BOX.x1 + 120 * n, BOX.y1) for n in range(people)]


@cache
def grid_of(people: int) -> np.ndarray:
    return camera_grid_with([Cell(box) for box in boxes_of(people)])


class Watched(PerceptionPipeline):
    """Keeps every window with the instant it was decided at."""

    def __init__(self, gating: Gating, fusion: FeatureFusion | None) -> None:
        self.windows: list[ClosedWindow] = []
        high_score = PipelineParameters().tracking(fusion is not None).high_score
        super().__init__(None, fusion, early_decision=GatedDecision(gating, high_score, 0.5))

    def _decide(self, window: ClosedWindow) -> Decision:
        self.windows.append(window)
        return super()._decide(window)


class Rig:
    """A camera and a radar on the drone, encoders, and the pipeline; time goes in ms.

    :param people: how many there are at an instant
    :param obeys: whether the camera rests when it is let
    """

    def __init__(
        self,
        answering: Answering,
        people: Callable[[float], int] = lambda _: 2,
        audits: AuditParameters | None = None,
        fusion: FeatureFusion | None = None,
        obeys: bool = True,
        returns_at: Callable[[float], list] = lambda _: [],
    ) -> None:
        parameters = SkipParameters(audits=audits or AuditParameters(share=0.0))
        self.control = SkipControl(parameters, 0.5, periods_ns=PERIODS)
        self.audits: list[float] = []
        gating = Gating(answering, self.control, on_audit=self.audits.append)
        self.pipeline = Watched(gating, fusion)
        self.pipeline.rig.set_camera(LENS)
        self.pipeline.rig.add_transforms(MOUNTS)
        self.capture = {m: CaptureControl(m, PERIODS[m]) for m in (CAMERA, RADAR)}
        self.decisions: list[Decision] = []
        self.skips: list[SkipDecision] = []
        self.encoded = {CAMERA: 0, RADAR: 0}
        self._people, self._obeys, self._returns = people, obeys, returns_at

    def play(self, begin: float, end: float) -> None:
        """Play units received in [begin, end)."""
        events: list[tuple[float, int, Unit]] = []
        for number, (modality, period) in enumerate(PERIODS.items()):
            for sequence in range(int(end / (period / MS)) + 1):
                when = 3.0 + sequence * period / MS
                if begin <= when < end:
                    events.append((when, number, unit(when, modality, sequence)))
        ready: list[tuple[float, UnitFeatures]] = []
        now = begin
        events.sort(key=lambda e: e[:2])
        while now < end:
            while events and events[0][0] <= now:
                when, _, of = events.pop(0)
                verdict = self.capture[of.modality].admit(of.stamp_ns)
                if verdict is Admission.SKIPPED and self._obeys:
                    self.pipeline.add_receipt(receipt(of, UnitOutcome.SKIPPED), at(now))
                    continue
                self.pipeline.add_receipt(receipt(of), at(now))
                ready.append((when + TAKEN[of.modality], self._encode(of, when)))
            for due, made in sorted(ready, key=lambda r: r[0]):
                if due <= now:
                    ready.remove((due, made))
                    self.encoded[made.modality] += 1
                    self.pipeline.add_features(made, at(now))
                    self._poll(now)
            self._poll(now)
            now += 1.0

    def _poll(self, now: float) -> None:
        self.decisions += [d.published(at(now)) for d in self.pipeline.poll(at(now))]
        for skip in self.pipeline.take_skips():
            self.skips.append(skip)
            self.capture[skip.modality].lease(skip)

    def _encode(self, of: Unit, when: float) -> UnitFeatures:
        if of.modality == RADAR:
            grid = np.zeros(RADAR_GRID, np.float16)
            return features(of, returns=returns(*self._returns(when)), grid=grid)
        boxes = boxes_of(self._people(when))
        return features(
            of,
            detections=tuple(Detection(box, 0.9, 'person') for box in boxes),
            image_size=(640, 480),
            grid=grid_of(len(boxes)),
        )

    def ends(self) -> list[float]:
        return [(d.window_end_ns - at(0)) / MS for d in self.decisions]


def test_without_a_yes_it_is_the_pipeline_as_it_was() -> None:
    rig = Rig(always(0.0))
    rig.play(0.0, 1000.0)
    assert rig.ends() == [100.0 * n for n in range(1, 10)]
    assert all(d.latency >= 0.0 for d in rig.decisions)
    assert rig.skips == []
    assert rig.encoded == {CAMERA: 30, RADAR: 20}


def test_a_yes_decides_before_the_window_ends_and_lets_the_camera_rest() -> None:
    rig = Rig(always(1.0))
    rig.play(0.0, 2000.0)
    # One decision for each window, in order.
    assert rig.ends() == [100.0 * n for n in range(1, len(rig.decisions) + 1)]
    early = [d for d in rig.decisions if d.latency < 0.0]
    assert len(early) > 8
    assert min(d.latency for d in early) < -0.2
    assert {skip.modality for skip in rig.skips} == {CAMERA}
    # 8 of 15 units are needed.
    assert 0.5 * 60 <= rig.encoded[CAMERA] <= 0.65 * 60
    assert rig.encoded[RADAR] == 40
    assert all(len(d.tracks) == 2 for d in rig.decisions[4:])
    assert all(d.state_ns <= d.published_ns for d in rig.decisions)
    assert all(d.state_ns <= d.window_end_ns for d in rig.decisions)
    assert any(CAMERA in d.skipped for d in early)
    assert not any(rig.pipeline.assembler.counts.late.values())


def test_while_pictures_are_unlike_those_it_was_certified_by_no_window_is_decided_early() -> None:
    rig = Rig(always(1.0))
    rig.pipeline.drift = drift = PictureDrift(usual_pictures())
    drift.words = ('pictures are unlike',)
    rig.play(0.0, 1000.0)
    assert rig.ends() == [100.0 * n for n in range(1, 10)]
    assert all(d.latency >= 0.0 for d in rig.decisions)
    assert rig.skips == []
    drift.words = ()
    rig.play(1000.0, 2000.0)
    assert rig.skips


def test_a_source_that_cannot_rest_is_used_all_the_same() -> None:
    rig = Rig(always(1.0), obeys=False)
    rig.play(0.0, 2000.0)
    assert rig.encoded[CAMERA] == 60
    given = [u.key for w in rig.pipeline.windows for u in w.fresh if u.modality == CAMERA]
    # Each unit is new to one window only, also those that came after theirs were decided.
    assert len(given) == len(set(given)) >= 58


def test_a_person_who_moves_into_the_radars_view_ends_the_rest() -> None:
    walls = [(8.0, -4.0 + 0.5 * n, 0.1 * n, 0.0) for n in range(16)]
    # Far from the two who are known already.
    moving = [(5.0, -3.0 + 0.1 * n, 0.0, -1.0) for n in range(6)]
    walker = Rig(always(1.0), returns_at=lambda when: walls + (moving if when >= 1300.0 else []))
    quiet = Rig(always(1.0), returns_at=lambda _: walls)
    for rig in (walker, quiet):
        rig.play(0.0, 1500.0)
    assert quiet.control.status.resumed == 0
    assert walker.control.status.resumed == 1
    resumed = [skip for skip in walker.skips if skip.skip_until_ns == skip.issued_ns]
    assert len(resumed) == 1
    assert walker.encoded[CAMERA] > quiet.encoded[CAMERA]


@pytest.mark.parametrize('learned', [False, True])
def test_an_audit_compares_what_would_have_been_decided(learned: bool) -> None:
    def fusion() -> FeatureFusion | None:
        return FeatureFusion(FakeFusionNetworks(), DecodingParameters(0.1)) if learned else None

    every = AuditParameters(share=1.0, alarm=1e9)
    steady = Rig(always(1.0), audits=every, fusion=fusion())
    steady.play(0.0, 2000.0)
    assert all(d.latency >= 0.0 for d in steady.decisions)
    assert steady.skips == []
    assert len(steady.audits) > 10
    assert max(steady.audits[5:]) < 0.3
    # A person comes between the early decision and the end of a window: the full decision differs.
    crowd = Rig(
        always(1.0), people=lambda when: 2 + (when > 1200.0), audits=every, fusion=fusion()
    )
    crowd.play(0.0, 2000.0)
    assert sum(crowd.audits) > sum(steady.audits)
    # The audit itself has changed nothing.
    silent = Rig(
        always(0.0), people=lambda when: 2 + (when > 1200.0), audits=every, fusion=fusion()
    )
    silent.play(0.0, 2000.0)
    assert [len(d.tracks) for d in silent.decisions] == [len(d.tracks) for d in crowd.decisions]
    assert [t.box for d in silent.decisions for t in d.tracks] == [
        t.box for d in crowd.decisions for t in d.tracks
    ]


def test_with_feature_fusion_early_windows_are_fused_from_what_is_there() -> None:
    networks = FakeFusionNetworks()
    rig = Rig(always(1.0), fusion=FeatureFusion(networks, DecodingParameters(0.1)))
    rig.play(0.0, 2000.0)
    assert any(d.latency < -0.2 for d in rig.decisions)
    assert all(len(d.tracks) == 2 for d in rig.decisions[4:])
    for end_ns, taken in networks.fused.items():
        assert all(stamp_ns <= end_ns for stamps in taken.values() for stamp_ns in stamps)


# ------------------------------------------------------------------- any order

INSTANTS = st.integers(0, 40)


class Interleaved(RuleBasedStateMachine):
    """Units, rests, configurations, late arrivals and losses in any order."""

    @initialize(
        answers=st.lists(st.sampled_from([0.0, 0.6, 1.0, float('nan')]), min_size=1, max_size=20),
        share=st.sampled_from([0.0, 0.2, 1.0]),
        learned=st.booleans(),
    )
    def begin(self, answers: list[float], share: float, learned: bool) -> None:
        turn = iter(range(10**9))
        answering = Answering(lambda *_: answers[next(turn) % len(answers)], [])
        parameters = SkipParameters(audits=AuditParameters(share=share))
        self.control = SkipControl(parameters, 0.5, periods_ns=PERIODS)
        networks = FakeFusionNetworks()
        fusion = FeatureFusion(networks, DecodingParameters(0.1)) if learned else None
        self.answering = answering
        self.pipeline = Watched(Gating(answering, self.control), fusion)
        self.capture = {m: CaptureControl(m, PERIODS[m]) for m in (CAMERA, RADAR)}
        self.now = 0.0
        self.sequence = 0
        self.level = 'small'
        self.work: list[UnitFeatures] = []
        self.known: set[UnitKey] = set()
        self.rested: set[UnitKey] = set()
        self.decisions: list[Decision] = []
        self.leases: list[SkipDecision] = []

    def _poll(self, hear: bool = True) -> None:
        self.decisions += [d.published(at(self.now)) for d in self.pipeline.poll(at(self.now))]
        for skip in self.pipeline.take_skips():
            assert skip.issued_ns <= skip.skip_until_ns <= skip.issued_ns + 500 * MS
            assert skip.issued_ns == at(self.now)
            self.leases.append(skip)
            if hear:  # else the message is lost
                self.capture[skip.modality].lease(skip)

    @rule(
        modality=st.sampled_from([CAMERA, RADAR]),
        gap=INSTANTS,
        delay=st.sampled_from([0.0, 5.0, 60.0]),
        announced=st.booleans(),
    )
    def receive(self, modality: str, gap: int, delay: float, announced: bool) -> None:
        self.now += gap
        self.sequence += 1
        of = unit(self.now, modality, self.sequence, delay)
        if self.capture[modality].admit(of.stamp_ns) is not Admission.TAKE:
            self.rested.add(UnitKey(modality, of.sequence, of.stamp_ns))
            if announced:
                self.pipeline.add_receipt(receipt(of, UnitOutcome.SKIPPED), at(self.now))
            return
        if announced:
            self.pipeline.add_receipt(receipt(of), at(self.now))
        content: dict[str, Any] = {'level': self.level}
        if modality == CAMERA:
            content['image_size'] = (640, 480)
            content['grid'] = grid_of(1)
        else:
            content['grid'] = np.zeros(RADAR_GRID, np.float16)
        self.work.append(features(of, **content))

    @rule(place=st.integers(0, 5), repeated=st.booleans(), hear=st.booleans())
    def encoded(self, place: int, repeated: bool, hear: bool) -> None:
        """Some unit in work arrives, not always the oldest one, and perhaps twice."""
        if self.work:
            made = self.work.pop(min(place, len(self.work) - 1))
            for _ in range(1 + repeated):
                self.known.add(made.key)
                self.pipeline.add_features(made, at(self.now))
                self._poll(hear)

    @rule(place=st.integers(0, 5))
    def lost(self, place: int) -> None:
        if self.work:
            self.work.pop(min(place, len(self.work) - 1))

    @rule(level=st.sampled_from(['small', 'large']))
    def configured(self, level: str) -> None:
        self.level = level

    @rule(gap=INSTANTS)
    def time_passes(self, gap: int) -> None:
        self.now += gap
        self._poll()

    @rule()
    def a_steady_while(self) -> None:
        """What a flight is made of, so that rests do happen."""
        for _ in range(10):
            self.receive(CAMERA, 33, 5.0, True)
            self.encoded(5, False, True)
            self.receive(RADAR, 0, 0.0, True)
            self.encoded(5, False, True)

    @invariant()
    def windows_are_decided_once_in_order_and_hold_their_own_units_only(self) -> None:
        ends = [d.window_end_ns for d in self.decisions]
        assert ends == sorted(set(ends))
        new: list[UnitKey] = []
        for window in self.pipeline.windows[-20:]:
            for each in (*window.members, *window.fresh):
                assert each.available_ns <= window.end_ns
                assert each.key in self.known
                assert each.key not in self.rested
            new += [each.key for each in window.fresh]
        assert len(new) == len(set(new))

    @invariant()
    def features_are_about_the_future_and_counts_no_unit_twice(self) -> None:
        for _, values in self.answering.evaluated[-3:]:
            assert values.lead > 0.0
            assert 0.0 < values.slow_fraction <= 1.0
            assert np.isfinite(values.vector()).all()

    @invariant()
    def no_window_waits_beyond_its_deadline(self) -> None:
        self._poll()
        assembler = self.pipeline.assembler
        if assembler.next_end_ns is not None:
            assert assembler.next_end_ns + assembler.deadline_ns > at(self.now)

    @invariant()
    def the_mask_names_what_rested(self) -> None:
        for decision in self.decisions[-10:]:
            begin_ns = decision.window_end_ns - 500 * MS
            for lease in self.leases:
                decided = decision.published_ns >= lease.issued_ns
                within = lease.issued_ns > begin_ns and lease.window_end_ns == (
                    decision.window_end_ns
                )
                if decided and within and lease.skip_until_ns > lease.issued_ns:
                    taken_back = any(
                        other.skip_until_ns == other.issued_ns == lease.issued_ns
                        for other in self.leases
                    )
                    assert taken_back or lease.modality in decision.skipped

    def teardown(self) -> None:
        """A fusion node that dies leaves the sensors running."""
        if not hasattr(self, 'capture'):
            return
        for control in self.capture.values():
            verdicts = [control.admit(at(self.now + ms)) for ms in range(0, 1200, 33)]
            resting = [v is Admission.SKIPPED for v in verdicts]
            assert not any(resting[17:])


Interleaved.TestCase.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
TestInterleaved = Interleaved.TestCase
