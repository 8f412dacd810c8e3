"""The graph in virtual time, with encoders that cost what a profile says."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hand_made_units import BEGIN_NS, LENS, MS, FakeEncoder, at, returns, unit

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Configuration,
    Decision,
    Detection,
    ModalityConfiguration,
    SkipDecision,
    Unit,
    UnitFeatures,
)
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding import EncodingError
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay.offline_replay import OfflineReplay
from mmedge_ros.report.report import decision_lines


def spread(milliseconds: float) -> tuple[float, ...]:
    """Quantiles around a duration."""
    return tuple(milliseconds / 1e3 * share for share in (0.6, 0.8, 1.0, 1.2, 1.5, 2.0))


def constant(milliseconds: float) -> tuple[float, ...]:
    return (milliseconds / 1e3,) * 6


def profile(**stages: tuple[float, ...]) -> DeviceProfile:
    usual = {
        'camera.encode': spread(15),
        'radar.encode': spread(0.3),
        'receipt.transport': spread(0.2),
        'features.transport': spread(1.0),
        'fusion': spread(3.0),
    }
    return DeviceProfile('', usual | {k.replace('_', '.'): v for k, v in stages.items()})


def flight(
    seconds: float = 3.0, begin: float = 0.0, cameras: bool = True, radars: bool = True
) -> list[Unit]:
    """Units of a 20 Hz camera and a 25 Hz radar by their arrival."""
    found: list[Unit] = []
    if cameras:
        count = round(20 * seconds)
        found += [unit(begin + 50 * n + 7, CAMERA, n, delay=5) for n in range(count)]
    if radars:
        count = round(25 * seconds)
        found += [unit(begin + 40 * n + 3, RADAR, n, delay=2) for n in range(count)]
    return sorted(found, key=lambda u: u.available_ns)


def walker(of: Unit) -> dict[str, Any]:
    """A person who walks away, as the camera and the radar see them."""
    x = 4.0 + 0.3 * ((of.stamp_ns - BEGIN_NS) / NS_PER_S % 60.0)
    if of.modality == RADAR:
        rows = [(x, 0.0, z, 0.3) for z in (-0.4, 0.0, 0.4)]
        return {'returns': returns(*rows).astype(np.float32)}
    half = 450 * 1.68 / x / 2
    box = Box(320 - half / 3, 240 - half, 320 + half / 3, 240 + half)
    return {'detections': (Detection(box, 0.9, 'person'),), 'image_size': (640, 480)}


def replay_of(
    units: Iterable[Unit],
    with_profile: DeviceProfile | None = None,
    pipeline: PerceptionPipeline | None = None,
    **encoders: FakeEncoder,
) -> OfflineReplay:
    if pipeline is None:
        pipeline = PerceptionPipeline()
        pipeline.rig.set_camera(LENS)
    usual = {m: FakeEncoder(m, walker) for m in (CAMERA, RADAR)}
    found = OfflineReplay(pipeline, usual | encoders, with_profile)
    found.run(iter(units))
    return found


def ends(decisions: Iterable[Decision]) -> list[float]:
    return [(d.window_end_ns - BEGIN_NS) / MS for d in decisions]


def record_of(replay: OfflineReplay) -> RunRecord:
    record = RunRecord('bag', 'offline', 0.05, 0.5, 0.1)
    replay.fill(record)
    return record


def windows_of(units: list[Unit]) -> int:
    """Window ends that a recording covers, as its record counts them."""
    first, last = (-(-u.available_ns // (100 * MS)) for u in (units[0], units[-1]))
    return last - first + 1


# ------------------------------------------------------------------------------ result


def test_two_runs_give_the_same_decisions_byte_for_byte() -> None:
    first, second = (replay_of(flight(4.0), profile()) for _ in range(2))
    lines = decision_lines(first.decisions)
    assert lines == decision_lines(second.decisions)
    assert lines.count('"label":"person"') > 30
    latencies = [d.latency for d in first.decisions]
    assert np.quantile(latencies, 0.95) > 1.2 * np.quantile(latencies, 0.5)


class SlowPipeline(PerceptionPipeline):
    """Takes 20 ms of real time over each unit."""

    def add_features(self, features: UnitFeatures, now_ns: int) -> None:
        begun = time.perf_counter_ns()
        super().add_features(features, now_ns)
        while time.perf_counter_ns() - begun < 20 * MS:
            pass


def test_measured_times_include_the_work_on_the_last_unit() -> None:
    (decision,) = replay_of([unit(99)], pipeline=SlowPipeline()).decisions
    assert at(119) <= decision.published_ns < at(200)
    assert sum(s.end_ns - s.begin_ns for s in decision.trail) == decision.published_ns - at(94)


# ------------------------------------------------------------------------------ trails


@pytest.mark.parametrize('with_profile', [True, False])
def test_the_trail_of_a_decision_sums_to_the_age_of_its_critical_unit(
    with_profile: bool,
) -> None:
    found = replay_of(flight(3.0), profile() if with_profile else None)
    stamps = {u.stamp_ns for u in found.features}
    for decision in found.decisions:
        trail = decision.trail
        assert [s.stage for s in trail] == [
            'acquisition',
            'transport',
            'queue',
            'encode',
            'transport_features',
            'window',
            'fusion',
        ]
        assert trail[0].begin_ns in stamps
        for one, next_one in pairwise(trail):
            assert one.end_ns == next_one.begin_ns
        assert all(s.begin_ns <= s.end_ns for s in trail)
        age_ns = decision.published_ns - trail[0].begin_ns
        assert sum(s.end_ns - s.begin_ns for s in trail) == age_ns
        latency_ns = decision.published_ns - decision.window_end_ns
        assert latency_ns == age_ns - (decision.window_end_ns - trail[0].begin_ns)
        assert decision.latency == pytest.approx(latency_ns / NS_PER_S)


def test_a_unit_received_just_before_the_end_is_waited_for() -> None:
    units = [unit(10), unit(99, sequence=1)]
    stages = profile(
        camera_encode=constant(20.0), features_transport=constant(1.0), fusion=constant(3.0)
    )
    (decision,) = replay_of(units, stages).decisions
    assert decision.published_ns == at(99 + 20 + 1 + 3)
    assert decision.newest_ns[CAMERA] == units[1].stamp_ns
    assert decision.late == ()


# ----------------------------------------------------------------------------- updates


def test_updates_come_at_the_pace_of_the_camera_and_change_no_decision() -> None:
    silent = PerceptionPipeline(PipelineParameters(updates=False))
    silent.rig.set_camera(LENS)
    units = flight(4.0)
    with_updates, without = replay_of(units, profile()), replay_of(units, profile(), silent)
    assert decision_lines(with_updates.decisions) == decision_lines(without.decisions)
    assert without.updates == []
    told = {update.newest_ns[CAMERA] for update in with_updates.updates}
    decided = {decision.newest_ns[CAMERA] for decision in with_updates.decisions}
    stamps = {u.stamp_ns for u in units if u.modality == CAMERA}
    assert told | decided == stamps
    assert len(told) > 0.5 * len(stamps)


def test_an_update_takes_its_time_and_no_decision_waits_for_it() -> None:
    # Encoded after 10 ms, and so 6 ms before decisions may be due.
    units = [unit(86 + 100 * n, sequence=n) for n in range(10)]
    stages = {
        'camera_encode': constant(10.0),
        'features_transport': constant(0.0),
        'receipt_transport': constant(0.0),
    }
    quick = replay_of(units, profile(fusion=constant(5.0), **stages))
    assert [u.published_ns for u in quick.updates] == [u.available_ns + 15 * MS for u in units]
    slow = replay_of(units, profile(fusion=constant(7.0), **stages))
    assert slow.updates == []
    assert [d.published_ns for d in slow.decisions] == [at(109.0 + 100 * n) for n in range(10)]


# ------------------------------------------------------------------------------ overload


def test_overload_drops_old_units_and_never_grows_a_queue() -> None:
    waiting: list[int] = []
    pipeline = PerceptionPipeline()
    camera = FakeEncoder(CAMERA, lambda _: waiting.append(len(replay.servers[CAMERA].intake)))
    replay = OfflineReplay(
        pipeline, {CAMERA: camera, RADAR: FakeEncoder(RADAR)}, profile(camera_encode=constant(120))
    )
    replay.run(iter(flight(10.0)))
    counts = record_of(replay).units[CAMERA]
    assert max(waiting) <= 2
    assert counts.received == 200
    assert counts.encoded + counts.dropped == 200
    # Units are spread so that they fit, which leaves the encoder some rest.
    assert 0.7 * 10_000 / 120 < counts.encoded < 10_000 / 120
    sequences = [call[0].sequence for call in camera.calls]
    assert sequences == sorted(sequences)
    assert counts.late > 25
    assert len(replay.decisions) == 100
    assert max(d.latency for d in replay.decisions) < 0.05 + 0.01


def test_a_pipeline_slower_than_the_stride_drops_windows_instead_of_falling_behind() -> None:
    units = flight(20.0)
    found = replay_of(units, profile(fusion=constant(250.0)))
    record = record_of(found)
    assert record.dropped > 50
    assert max(d.latency for d in found.decisions) < 7.0
    assert all(a.published_ns < b.published_ns for a, b in pairwise(found.decisions))


# ------------------------------------------------------------------------------ gaps


def test_a_gap_is_lived_through_and_the_windows_in_it_are_accounted_for() -> None:
    units = flight(2.0) + flight(2.0, begin=32_000)
    found = replay_of(units, profile())
    record = record_of(found)
    assert windows_of(units) == 340
    assert len(found.decisions) + record.dropped == 340
    silent = [d for d in found.decisions if at(4000) < d.window_end_ns < at(32_000)]
    assert silent
    assert all(d.lost == (CAMERA, RADAR) for d in silent)
    assert all(d.tracks == () for d in silent if d.window_end_ns > at(4600))
    before, after = (
        {t.id for d in found.decisions for t in d.tracks if (d.window_end_ns < at(9000)) is early}
        for early in (True, False)
    )
    assert before
    assert after
    assert not before & after


@pytest.mark.parametrize('years', [50, -50])
def test_one_wrong_clock_does_not_make_windows_for_years(years: int) -> None:
    away = years * 365 * 86_400_000
    units = flight(1.0) + flight(1.0, begin=away)
    units.sort(key=lambda u: u.available_ns)
    begun = time.monotonic()
    found = replay_of(units, profile())
    assert time.monotonic() - begun < 10.0
    assert len(found.decisions) < 100
    assert len(found.decisions) + record_of(found).dropped == windows_of(units)
    assert found.decisions[-1].tracks


def test_windows_after_the_last_unit_are_not_the_recordings() -> None:
    stages = profile(camera_encode=constant(900.0))
    units = [unit(90), unit(180, RADAR)]
    assert ends(replay_of(units, stages).decisions) == [100, 200]


# ------------------------------------------------------------------------------ failures


def test_units_that_cannot_be_encoded_are_counted_and_block_nothing() -> None:
    def work(each: Unit) -> dict[str, Any]:
        if each.sequence % 3 == 0:
            raise EncodingError('the picture is broken')
        return walker(each)

    found = replay_of(flight(3.0), profile(), camera=FakeEncoder(CAMERA, work))
    record = record_of(found)
    counts = record.units[CAMERA]
    assert (counts.received, counts.encoded, counts.failed) == (60, 40, 20)
    assert counts.late == 0
    assert len(found.decisions) == 30
    assert any('20' in text and 'the picture is broken' in text for text in record.problems)
    assert max(d.latency for d in found.decisions) < 0.05


def test_stamps_that_cannot_be_true_are_replaced_and_reported() -> None:
    units = [replace(u, stamp_ns=0) if u.modality == RADAR else u for u in flight(1.0)]
    record = record_of(replay_of(units, profile()))
    assert any(text.startswith('radar: 25') for text in record.problems)


# ------------------------------------------------------------------------------ control


def controlled(
    units: Iterator[Unit], *, configuration: Configuration, lease: SkipDecision
) -> OfflineReplay:
    encoders = {m: FakeEncoder(m) for m in (CAMERA, RADAR)}
    replay = OfflineReplay(
        PerceptionPipeline(PipelineParameters()), encoders, profile(), {CAMERA: 50 * MS}
    )
    control = replay.servers[CAMERA].intake.control
    control.schedule.add(configuration)
    control.lease(lease)
    replay.run(units)
    return replay


def test_rates_and_leases_are_obeyed_and_told() -> None:
    part = ModalityConfiguration(CAMERA, rate=10.0, level='small')
    replay = controlled(
        iter(flight(3.0)),
        configuration=Configuration(4, at(1000), (part,)),
        lease=SkipDecision(CAMERA, at(2000), at(2400), at(2000)),
    )
    counts = record_of(replay).units[CAMERA]
    assert counts.thinned == 20
    assert counts.skipped == 4
    assert counts.encoded == 60 - 24
    told = {d.configuration_ids for d in replay.decisions}
    assert told == {(0,), (0, 4), (4,)} or told == {(0,), (0, 4)}
    skipping = [
        ms for ms, d in zip(ends(replay.decisions), replay.decisions, strict=True) if d.skipped
    ]
    assert skipping[0] in (2000, 2100)
    assert skipping[-1] == 2800
