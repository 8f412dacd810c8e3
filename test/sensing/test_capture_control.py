"""Skip leases and configurations, decided by stamps."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import (
    CAMERA,
    LONGEST_STANDBY,
    RADAR,
    RATE_AFTER_STANDBY,
    STANDBY,
    Configuration,
    ModalityConfiguration,
    SkipDecision,
)
from mmedge_ros.sensing.capture_control import (
    Admission,
    CaptureControl,
    ConfigurationSchedule,
    LatestQueue,
)

MS = 1_000_000
BEGIN = 1_700_000_000_000_000_000
PERIOD = 50
TAKE, SKIPPED, THINNED = Admission.TAKE, Admission.SKIPPED, Admission.THINNED


def at(ms: float) -> int:
    return BEGIN + round(ms * MS)


def lease(issued: float, until: float, modality: str = CAMERA) -> SkipDecision:
    return SkipDecision(modality, at(issued), at(until), at(issued))


def configuration(number: int, effective_from: float, rate: float) -> Configuration:
    part = ModalityConfiguration(CAMERA, rate)
    return Configuration(number, at(effective_from), (part,))


def verdicts(control: CaptureControl, first: float, last: float) -> list[Admission]:
    """Verdicts on the units of a 20 Hz camera from ``first`` up to ``last`` ms."""
    return [control.admit(at(ms)) for ms in range(int(first), int(last), PERIOD)]


def test_without_leases_and_configurations_every_unit_is_taken() -> None:
    assert verdicts(CaptureControl(CAMERA), 0, 2000) == [TAKE] * 40


@pytest.mark.parametrize(('delay', 'phase'), [(5, 85), (30, 55), (90, 45), (None, 45)])
def test_of_the_units_that_a_rate_leaves_those_are_taken_that_arrive_as_windows_end(
    delay: float | None, phase: float
) -> None:
    control = CaptureControl(CAMERA, PERIOD * MS // 5)
    control.schedule.add(configuration(1, 0, rate=10.0))
    taken = []
    for ms in range(5, 2000, PERIOD // 5):
        available_ns = None if delay is None else at(ms + delay)
        if control.admit(at(ms), available_ns) is TAKE:
            taken.append(ms % 100)
    assert set(taken[2:]) == {phase}


# ------------------------------------------------------------------------------ leases


def test_a_lease_covers_its_begin_and_not_its_end() -> None:
    control = CaptureControl(CAMERA)
    control.lease(lease(100, 200))
    assert verdicts(control, 0, 300) == [TAKE, TAKE, SKIPPED, SKIPPED, TAKE, TAKE]


def test_an_expired_lease_resumes_by_itself() -> None:
    control = CaptureControl(CAMERA)
    control.lease(lease(0, 200))
    assert verdicts(control, 0, 2000)[4:] == [TAKE] * 36


def test_a_lease_longer_than_the_forced_refresh_is_cut_to_it() -> None:
    control = CaptureControl(CAMERA, longest_lease=0.3)
    control.lease(lease(0, 3_600_000))
    assert verdicts(control, 0, 2000) == [SKIPPED] * 6 + [TAKE] * 34


def test_a_lease_of_another_sensor_is_ignored() -> None:
    control = CaptureControl(CAMERA)
    control.lease(lease(0, 200, RADAR))
    assert verdicts(control, 0, 400) == [TAKE] * 8


def test_a_later_lease_may_take_an_earlier_one_back() -> None:
    control = CaptureControl(CAMERA)
    control.lease(lease(0, 400))
    assert verdicts(control, 0, 100) == [SKIPPED] * 2
    control.lease(lease(100, 0))
    assert verdicts(control, 100, 400) == [TAKE] * 6


@pytest.mark.parametrize('every', [50, 100, 250])
def test_leases_without_end_cannot_blind_the_sensor(every: int) -> None:
    control = CaptureControl(CAMERA, longest_lease=0.5)
    found = []
    for ms in range(0, 5000, PERIOD):
        if ms % every == 0:
            control.lease(lease(ms, ms + 500))
        found.append(control.admit(at(ms)))
    assert found == ([SKIPPED] * 10 + [TAKE]) * 9 + [SKIPPED]


def test_after_a_clock_set_back_the_refresh_is_not_waited_for_again() -> None:
    control = CaptureControl(CAMERA)
    control.lease(lease(3_600_000, 3_600_500))
    assert control.admit(at(3_600_000)) is SKIPPED
    control.lease(lease(0, 500))
    assert control.admit(at(0)) is TAKE


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3000),
            st.integers(-(2**62), 2**62) | st.integers(-1000, 4000),
            st.integers(-(2**62), 2**62) | st.integers(-1000, 4000),
        ),
        max_size=30,
    )
)
def test_whatever_leases_come_a_unit_is_taken_in_time(
    leases: list[tuple[int, int, int]],
) -> None:
    control = CaptureControl(CAMERA, longest_lease=0.5)
    taken = [0]
    for ms in range(0, 3000, PERIOD):
        for _, issued, until in (x for x in leases if ms <= x[0] < ms + PERIOD):
            control.lease(SkipDecision(CAMERA, BEGIN + issued * MS, BEGIN + until * MS, 0))
        if control.admit(at(ms)) is TAKE:
            assert ms - taken[-1] <= 500 + PERIOD
            taken.append(ms)
    assert 3000 - taken[-1] <= 500 + PERIOD


# ------------------------------------------------------------------------------ configurations


def test_a_configuration_holds_from_the_stamp_it_names() -> None:
    schedule = ConfigurationSchedule()
    schedule.add(configuration(2, 200, 10.0))
    schedule.add(configuration(1, 100, 5.0))
    assert [schedule.at(at(ms)).id for ms in (0, 99.9, 100, 199.9, 200, 9000)] == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]


def test_a_late_unit_falls_under_the_configuration_of_its_stamp() -> None:
    schedule = ConfigurationSchedule()
    schedule.add(configuration(1, 100, 5.0))
    schedule.add(configuration(2, 200, 10.0))
    assert schedule.at(at(300)).id == 2
    assert schedule.at(at(150)).id == 1


def test_a_configuration_sent_again_replaces_itself() -> None:
    schedule = ConfigurationSchedule()
    schedule.add(configuration(1, 100, 5.0))
    schedule.add(configuration(1, 300, 10.0))
    assert schedule.at(at(200)).id == 0
    assert schedule.at(at(300)).of(CAMERA).rate == 10.0


def test_before_every_known_configuration_the_earliest_one_holds() -> None:
    first = configuration(7, 100, 5.0)
    assert ConfigurationSchedule(first).at(at(0)) is first


def test_an_endless_row_of_configurations_is_remembered_in_part() -> None:
    schedule = ConfigurationSchedule()
    for number in range(1, 1000):
        schedule.add(configuration(number, 100 * number, 5.0))
    assert schedule.at(at(99_900)).id == 999
    assert schedule.at(at(99_500)).id == 995
    assert len(schedule._known) < 20


@pytest.mark.parametrize('rate', [1e-9, 0.1, float('nan'), float('inf'), -7.0, -1e-9])
def test_no_rate_blinds_the_sensor(rate: float) -> None:
    control = CaptureControl(CAMERA, native_period_ns=PERIOD * MS)
    control.schedule.add(configuration(1, 0, rate))
    taken = [n for n, verdict in enumerate(verdicts(control, 0, 5000)) if verdict is TAKE]
    assert max(b - a for a, b in zip([0, *taken], [*taken, 100], strict=True)) * PERIOD <= 600


def test_configurations_of_a_far_future_do_not_drive_out_the_one_in_force() -> None:
    control = CaptureControl(CAMERA, native_period_ns=PERIOD * MS)
    control.schedule.add(configuration(1, 0, 10.0))
    for number in range(2, 9):
        control.schedule.add(configuration(number, 1e12, 1e-9))
    assert verdicts(control, 1000, 2000).count(TAKE) == 10


@pytest.mark.parametrize('back', [2000, 60_000, 3_600_000])
def test_after_a_clock_set_back_the_configuration_in_force_stays_in_force(back: int) -> None:
    control = CaptureControl(CAMERA, native_period_ns=PERIOD * MS)
    control.schedule.add(configuration(1, -7_200_000, STANDBY))
    control.schedule.add(configuration(2, 0, 10.0))
    control.schedule.add(configuration(3, 900, 5.0))
    verdicts(control, 0, 1000)
    assert verdicts(control, 1000 - back, 3000 - back).count(TAKE) == 10
    control.schedule.add(configuration(4, 3000 - back, 0.0))
    assert verdicts(control, 3000 - back, 4000 - back).count(TAKE) == 20


def test_the_rate_changes_with_the_configuration() -> None:
    control = CaptureControl(CAMERA, native_period_ns=PERIOD * MS)
    control.schedule.add(configuration(1, 1000, 10.0))
    control.schedule.add(configuration(2, 2000, 0.0))
    found = verdicts(control, 0, 3000)
    assert found[:20] == found[40:] == [TAKE] * 20
    assert found[20:40].count(TAKE) == 10
    assert found[20:40].count(THINNED) == 10


def test_a_sensor_that_stands_by_takes_nothing_until_the_next_configuration() -> None:
    control = CaptureControl(CAMERA, native_period_ns=PERIOD * MS)
    control.schedule.add(configuration(1, 1000, STANDBY))
    control.schedule.add(configuration(2, 6000, 0.0))
    assert set(verdicts(control, 0, 1000)) == {TAKE}
    assert set(verdicts(control, 1000, 6000)) == {THINNED}
    assert set(verdicts(control, 6000, 7000)) == {TAKE}


def test_standing_by_ends_by_itself_where_nothing_follows_it() -> None:
    control = CaptureControl(CAMERA, native_period_ns=PERIOD * MS)
    control.schedule.add(configuration(1, 0, STANDBY))
    end = round(1000 * LONGEST_STANDBY)
    assert TAKE not in verdicts(control, 0, end)
    assert verdicts(control, end, end + 1000).count(TAKE) == RATE_AFTER_STANDBY


def test_a_configuration_of_another_sensor_thins_nothing() -> None:
    control = CaptureControl(RADAR, native_period_ns=PERIOD * MS)
    control.schedule.add(configuration(1, 0, 5.0))
    assert verdicts(control, 0, 1000) == [TAKE] * 20


def test_a_unit_above_the_rate_is_thinned_and_not_skipped() -> None:
    control = CaptureControl(CAMERA, native_period_ns=PERIOD * MS)
    control.schedule.add(configuration(1, 0, 10.0))
    control.lease(lease(0, 400))
    found = verdicts(control, 0, 400)
    assert found.count(SKIPPED) == found.count(THINNED) == 4


def test_the_oldest_gives_way_and_is_counted() -> None:
    queue: LatestQueue[int] = LatestQueue(2)
    for item in range(5):
        queue.put(item)
    assert (queue.take(0.0), queue.take(0.0), queue.take(0.0)) == (3, 4, None)
    assert queue.dropped == 3


def test_whoever_waits_is_woken_by_an_item_and_by_the_end() -> None:
    queue: LatestQueue[str] = LatestQueue(2)
    taken: list[str | None] = []
    taker = threading.Thread(target=lambda: taken.extend([queue.take(20.0), queue.take(20.0)]))
    taker.start()
    queue.put('scan')
    queue.close()
    taker.join(10.0)
    assert taken == ['scan', None]
