"""Which windows close when, and with what."""

from __future__ import annotations

import pytest
from hand_made_units import BEGIN_NS, MS, at, features, receipt, unit
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tries import tries

from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    STANDBY,
    Configuration,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
    UnitOutcome,
)
from mmedge_ros.pipeline.window_assembler import ClosedWindow, WindowAssembler, WindowParameters


def ends(windows: list[ClosedWindow]) -> list[float]:
    """Window ends in ms since the beginning."""
    return [(window.end_ns - BEGIN_NS) / MS for window in windows]


def received(assembler: WindowAssembler, of: Unit, now: float | None = None) -> None:
    """A receipt that travels for a tenth of a millisecond."""
    now_ns = of.available_ns + MS // 10 if now is None else at(now)
    assembler.add_receipt(receipt(of), now_ns)


def encoded(assembler: WindowAssembler, of: Unit, now: float) -> UnitFeatures:
    found = features(of)
    assembler.add_features(found, at(now))
    return found


def entries(assembler: WindowAssembler) -> int:
    """Everything an assembler remembers."""
    return sum(len(v) for v in vars(assembler).values() if isinstance(v, list | dict | set))


def test_a_unit_belongs_to_the_windows_that_end_up_to_one_length_after_it() -> None:
    assembler = WindowAssembler()
    assert list(assembler.open_ends(at(40))) == [at(100 * n) for n in range(1, 6)]
    # A window covers what came after its begin, up to its end.
    assert list(assembler.open_ends(at(100))) == [at(100 * n) for n in range(1, 6)]
    assert list(assembler.open_ends(at(100) + 1)) == [at(100 * n) for n in range(2, 7)]
    encoded(assembler, unit(40), 60)
    assembler.poll(at(203))
    assert list(assembler.open_ends(at(90))) == [at(300), at(400), at(500)]
    assert list(assembler.open_ends(at(-300))) == []


# ------------------------------------------------------------------------------ closing


def test_a_window_is_not_waited_for_longer_than_leaves_time_for_the_work_on_it() -> None:
    assembler = WindowAssembler()
    assembler.reserve_ns = 20 * MS
    received(assembler, unit(90))
    assert assembler.last_call_ns == assembler.next_poll_ns(at(110)) == at(130)
    assert assembler.poll(at(129.9)) == []
    (window,) = assembler.poll(at(130))
    assert window.late == (CAMERA,)


@pytest.mark.parametrize('reserve', [49.0, 60.0, 5000.0])
def test_receipts_are_given_time_to_come_however_long_the_work_takes(reserve: float) -> None:
    assembler = WindowAssembler()
    assembler.reserve_ns = round(reserve * MS)
    received(assembler, unit(90))
    assert assembler.last_call_ns == at(102)


@pytest.mark.parametrize(('now', 'dropped'), [(120, 0), (249.9, 0), (250, 1), (449.9, 2)])
def test_a_window_is_dropped_when_the_one_after_it_is_due(now: float, dropped: int) -> None:
    assembler = WindowAssembler()
    received(assembler, unit(90))
    assembler.drop_overdue(at(now))
    assert assembler.next_end_ns == at(100 + 100 * dropped)
    assert assembler.counts.dropped_windows == dropped


def test_a_window_closes_as_soon_as_every_unit_received_by_its_end_is_encoded() -> None:
    assembler = WindowAssembler()
    received(assembler, unit(90))
    assert assembler.poll(at(103)) == []
    found = encoded(assembler, unit(90), 111)
    (window,) = assembler.poll(at(111))
    assert (window.end_ns, window.closed_ns) == (at(100), at(111))
    assert window.fresh == window.members == (found,)
    assert window.critical is found
    assert window.critical_arrived_ns == at(111)
    assert window.late == ()
    assert not assembler.counts.late


def test_a_unit_received_at_the_very_end_is_waited_for() -> None:
    assembler = WindowAssembler()
    received(assembler, unit(100))
    assert assembler.poll(at(120)) == []
    encoded(assembler, unit(100), 125)
    assert ends(assembler.poll(at(125))) == [100]


def test_a_unit_that_was_not_received_by_the_end_is_not_waited_for() -> None:
    assembler = WindowAssembler(modalities=(CAMERA, RADAR))
    encoded(assembler, unit(40), 60)
    received(assembler, unit(100.5, RADAR), 101)
    assert ends(assembler.poll(at(102))) == [100]


def slow(assembler: WindowAssembler, took: float) -> None:
    """Ten pictures before the first window end, each encoded that long after it came, in ms."""
    for number in range(10):
        each = unit(1 + number, sequence=number)
        received(assembler, each)
        encoded(assembler, each, 1 + number + took)


def test_in_flight_a_unit_that_cannot_come_in_time_is_not_waited_for() -> None:
    assembler = WindowAssembler()
    assembler.gives_up = True
    slow(assembler, 80)
    received(assembler, unit(75, sequence=50))
    (window,) = assembler.poll(at(102))
    assert window.late == (CAMERA,)
    found = encoded(assembler, unit(75, sequence=50), 160)
    (window,) = assembler.poll(at(202))
    assert window.fresh == (found,)


@pytest.mark.parametrize(('gives_up', 'available'), [(True, 65), (False, 75)])
def test_a_unit_that_may_come_in_time_is_waited_for(gives_up: bool, available: float) -> None:
    assembler = WindowAssembler()
    assembler.gives_up = gives_up
    slow(assembler, 80)
    received(assembler, unit(available, sequence=50))
    assert assembler.poll(at(149.9)) == []


def test_a_late_unit_is_counted_once_and_given_out_by_the_next_window() -> None:
    assembler = WindowAssembler()
    received(assembler, unit(90))
    assert [w.late for w in assembler.poll(at(150))] == [(CAMERA,)]
    assert assembler.poll(at(202)) == []
    assert [w.late for w in assembler.poll(at(250))] == [(CAMERA,)]
    found = encoded(assembler, unit(90), 260)
    (window,) = assembler.poll(at(302))
    assert window.fresh == (found,)
    assert window.late == ()
    assert assembler.counts.late == {CAMERA: 1}
    assert not assembler.counts.unheard


def test_a_unit_first_heard_of_when_its_window_was_closed_is_late() -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(50, sequence=0), 60)
    assert ends(assembler.poll(at(102))) == [100]
    received(assembler, unit(100, sequence=1), 103)
    found = encoded(assembler, unit(100, sequence=1), 110)
    assert assembler.counts.late == {CAMERA: 1}
    assert assembler.poll(at(202))[0].fresh == (found,)
    assert assembler.counts.late == {CAMERA: 1}


@pytest.mark.parametrize('outcome', [UnitOutcome.SKIPPED, UnitOutcome.DROPPED, UnitOutcome.FAILED])
@pytest.mark.parametrize('announced', [True, False])
def test_a_unit_that_will_not_be_encoded_blocks_nothing(
    outcome: UnitOutcome, announced: bool
) -> None:
    assembler = WindowAssembler()
    if announced:
        received(assembler, unit(90))
    assembler.add_receipt(receipt(unit(90), outcome), at(91))
    (window,) = assembler.poll(at(102))
    assert window.fresh == window.late == ()
    assert window.skipped == ((CAMERA,) if outcome is UnitOutcome.SKIPPED else ())


def test_a_skip_is_told_by_every_window_that_holds_the_unit() -> None:
    assembler = WindowAssembler()
    assembler.add_receipt(receipt(unit(100), UnitOutcome.SKIPPED), at(100))
    windows = [w for ms in range(102, 803, 100) for w in assembler.poll(at(ms))]
    assert [w.skipped for w in windows] == [(CAMERA,)] * 5 + [()] * 3


def test_the_outcome_may_overtake_the_receipt() -> None:
    assembler = WindowAssembler()
    assembler.add_receipt(receipt(unit(90), UnitOutcome.DROPPED), at(91))
    received(assembler, unit(90), 92)
    assert ends(assembler.poll(at(102))) == [100]


def test_a_unit_that_is_never_encoded_is_given_up_with_its_last_window() -> None:
    assembler = WindowAssembler()
    received(assembler, unit(90))
    windows = [w for ms in range(100, 1000, 2) for w in assembler.poll(at(ms))]
    assert ends([w for w in windows if w.late]) == [100, 200, 300, 400, 500]
    assert assembler.counts.unheard == {CAMERA: 1}
    assert windows[-1].closed_ns == windows[-1].end_ns + 2 * MS
    found = encoded(assembler, unit(90), 1001)
    assert assembler.poll(at(1002))[0].fresh == (found,)


# ------------------------------------------------------------------------------ order and content


def test_a_window_after_dropped_ones_begins_after_its_begin_too() -> None:
    assembler = WindowAssembler()
    for sequence, ms in enumerate((100, 100.001)):
        encoded(assembler, unit(ms, sequence=sequence), ms + 1)
    assembler.add_receipt(receipt(unit(100, RADAR), UnitOutcome.SKIPPED), at(102))
    assembler.drop_until(at(600))
    (window,) = assembler.poll(at(603))
    assert [u.sequence for u in window.members] == [1]
    assert window.skipped == ()


def test_membership_is_by_arrival_and_order_by_measurement() -> None:
    assembler = WindowAssembler()
    slow, quick = unit(95, delay=80, sequence=1), unit(60, delay=2, sequence=0)
    stays_out = unit(101, delay=99, sequence=2)
    for each, now in ((quick, 62), (slow, 97), (stays_out, 102)):
        encoded(assembler, each, now)
    (window,) = assembler.poll(at(102))
    assert [u.sequence for u in window.fresh] == [1, 0]


def test_the_critical_unit_is_the_one_that_came_last() -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(95, RADAR, delay=1), 96)
    waited_for = encoded(assembler, unit(60, CAMERA, delay=30), 98)
    (window,) = assembler.poll(at(102))
    assert window.critical is waited_for
    assert window.critical_arrived_ns == at(98)


def test_repeated_features_are_ignored_even_when_their_windows_are_closed() -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(50), 60)
    encoded(assembler, unit(50), 61)
    fresh = [u for ms in range(100, 3000, 10) for w in assembler.poll(at(ms)) for u in w.fresh]
    assert not assembler.add_features(features(unit(50)), at(3000))
    fresh += [u for ms in range(3000, 3300, 10) for w in assembler.poll(at(ms)) for u in w.fresh]
    assert len(fresh) == 1
    assert assembler.counts.repeated == {CAMERA: 2}


def test_an_encoder_that_restarts_counts_from_zero_and_is_understood() -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(50, sequence=0), 60)
    again = unit(150, sequence=0)
    received(assembler, again)
    assert ends(assembler.poll(at(120))) == [100]
    found = encoded(assembler, again, 160)
    assert assembler.poll(at(202))[0].fresh == (found,)
    assert not assembler.counts.repeated


def test_a_silent_sensor_is_lost_once_a_window_holds_nothing_of_it() -> None:
    assembler = WindowAssembler(modalities=(CAMERA, RADAR))
    encoded(assembler, unit(50), 60)
    windows = [w for ms in range(100, 803, 2) for w in assembler.poll(at(ms))]
    assert [w.lost for w in windows] == [(RADAR,)] * 5 + [(CAMERA, RADAR)] * 3
    encoded(assembler, unit(850, RADAR), 860)
    assert assembler.poll(at(902))[0].lost == (CAMERA,)


def test_a_sensor_that_stands_by_is_not_lost_until_it_should_have_sent_something() -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(50), 60)
    encoded(assembler, unit(51, RADAR), 60)
    for number, (begin, rate) in enumerate([(100, STANDBY), (700, 10.0)], 1):
        part = ModalityConfiguration(CAMERA, rate)
        assembler.schedule.add(Configuration(number, at(begin), (part,)))
    windows = {w.end_ns: w.lost for ms in range(100, 1403, 2) for w in assembler.poll(at(ms))}
    assert windows[at(700)] == windows[at(1100)] == (RADAR,)
    assert windows[at(1300)] == (CAMERA, RADAR)


def test_a_sensor_last_heard_of_at_the_begin_of_a_window_is_lost_in_it() -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(100), 101)
    encoded(assembler, unit(100.001, RADAR), 101)
    windows = {w.end_ns: w for ms in range(102, 703, 2) for w in assembler.poll(at(ms))}
    assert windows[at(500)].lost == ()
    assert windows[at(600)].lost == (CAMERA,)


def test_units_between_windows_shorter_than_their_stride_are_not_lost() -> None:
    assembler = WindowAssembler(WindowParameters(window=0.05, stride=0.1))
    encoded(assembler, unit(90, sequence=0), 95)
    received(assembler, unit(101, sequence=1), 101.5)
    encoded(assembler, unit(101.2, sequence=2), 101.8)
    assert [u.sequence for u in assembler.poll(at(102))[0].members] == [0]
    encoded(assembler, unit(101, sequence=1), 130)
    (window,) = assembler.poll(at(202))
    assert [u.sequence for u in window.fresh] == [1, 2]
    assert window.members == ()
    assert not assembler.counts.unheard


# ------------------------------------------------------------------------------ hostile times


def test_a_clock_set_back_starts_over() -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(10_050), 10_060)
    received(assembler, unit(10_090, sequence=1))
    assert ends(assembler.poll(at(10_150))) == [10_100]
    found = encoded(assembler, unit(50, sequence=2), 60)
    (window,) = assembler.poll(at(102))
    assert window.end_ns == at(100)
    assert window.fresh == window.members == (found,)
    assert assembler.counts.restarts == 1
    assert not assembler.counts.dropped_windows


@pytest.mark.parametrize('available', [-1.7e12, -3600e3, -6000])
def test_one_wrong_time_in_a_message_costs_no_window(available: float) -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(50), 60)
    received(assembler, unit(available, sequence=1), 70)
    assert not assembler.add_features(features(unit(available, sequence=1)), at(71))
    (window,) = assembler.poll(at(102))
    assert [u.sequence for u in window.fresh] == [0]
    assert assembler.counts.restarts == 0
    assert assembler.counts.stale == 2


def test_a_first_message_with_a_wrong_time_does_not_set_the_grid() -> None:
    assembler = WindowAssembler()
    received(assembler, unit(-1.7e12), 10)
    encoded(assembler, unit(2050), 2060)
    assert ends(assembler.poll(at(2102)))[-1] == 2100
    assert assembler.counts.dropped_windows < 30


def test_after_a_long_stall_windows_are_dropped_and_counted_but_no_unit() -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(50), 60)
    assembler.poll(at(102))
    found = encoded(assembler, unit(150, sequence=1), 5050)
    windows = assembler.poll(at(5051))
    assert ends(windows) == [4900, 5000]
    assert windows[0].fresh == (found,)
    assert assembler.counts.dropped_windows == 47


def test_a_window_is_kept_for_as_long_as_its_deadline_lets_it_wait() -> None:
    assembler = WindowAssembler(WindowParameters(deadline=3.0))
    received(assembler, unit(50))
    assert assembler.poll(at(3050)) == []
    encoded(assembler, unit(50), 3060)
    assert ends(assembler.poll(at(3061)))[0] == 100
    assert assembler.counts.dropped_windows == 0


@pytest.mark.parametrize(('available', 'delay'), [(5000, 5), (90, -3e9), (1e15, 5)])
def test_a_unit_from_the_future_is_ignored_and_counted(available: float, delay: float) -> None:
    assembler = WindowAssembler()
    encoded(assembler, unit(50), 60)
    ahead = unit(available, sequence=1, delay=delay)
    received(assembler, ahead, 61)
    assert not assembler.add_features(features(ahead), at(62))
    assert assembler.counts.ahead == 2
    assert [u.sequence for u in assembler.poll(at(102))[0].fresh] == [0]
    assert assembler.poll(at(202))[0].late == ()


def test_the_next_poll_is_due_when_time_alone_can_close_a_window() -> None:
    assembler = WindowAssembler()
    assert assembler.next_poll_ns(at(0)) is None
    received(assembler, unit(90))
    assert assembler.next_poll_ns(at(91)) == at(102)
    assert assembler.poll(at(102)) == []
    assert assembler.next_poll_ns(at(102)) == at(150)
    assert ends(assembler.poll(at(150))) == [100]
    assert assembler.next_poll_ns(at(150)) == at(202)


def test_nothing_is_dropped_backwards() -> None:
    assembler = WindowAssembler()
    assembler.add_features(features(unit(350.0)), at(360.0))
    assembler.drop_until(at(200.0))
    assert assembler.next_end_ns == at(400.0)
    assert assembler.counts.dropped_windows == 0


def test_before_the_first_unit_it_says_which_window_is_the_first() -> None:
    assembler = WindowAssembler()
    assembler.drop_until(at(500.0))
    assembler.add_features(features(unit(50.0)), at(60.0))
    assert assembler.poll(at(410.0)) == []
    (window,) = assembler.poll(at(510.0))
    assert window.end_ns == at(500.0)
    assert len(window.members) == 1


def test_a_listener_is_told_of_every_window_that_closes_early_or_not() -> None:
    assembler = WindowAssembler()
    told: list[ClosedWindow] = []
    assembler.on_close = told.append
    assembler.add_features(features(unit(50.0)), at(60.0))
    closed = assembler.poll(at(110.0))
    early = assembler.close_early(at(160.0))
    assert told == [*closed, early]
    assert [window.end_ns for window in told] == [at(100.0), at(200.0)]


# ------------------------------------------------------------------------------ endless streams


def test_memory_stays_bounded_on_an_endless_flight_with_everything_late() -> None:
    assembler = WindowAssembler()
    sizes = []
    for n in range(6000):
        now = 10.0 * n
        received(assembler, unit(now, sequence=n))
        rests = receipt(unit(now, RADAR, n), UnitOutcome.SKIPPED)
        assembler.add_receipt(rests, at(now))
        if n % 3 and n > 20:
            encoded(assembler, unit(now - 200, sequence=n - 20), now + 1)
        assembler.poll(at(now + 2))
        sizes.append(entries(assembler))
    assert max(sizes[3000:]) <= max(sizes[:3000]) + 10
    assert sum(assembler.counts.late.values()) > 1000


@pytest.mark.parametrize('kind', ['receipts', 'features', 'modalities'])
def test_memory_stays_bounded_when_the_clock_stands_still(kind: str) -> None:
    assembler = WindowAssembler()
    for n in range(25_000):
        each = unit(50, sequence=n)
        if kind == 'receipts':
            received(assembler, each, 60)
        elif kind == 'features':
            assembler.add_features(features(each), at(60))
        else:
            named = features(each)
            object.__setattr__(named, 'modality', f'sensor {n}')
            assembler.add_features(named, at(60))
        assert assembler.poll(at(60)) == []
    assert entries(assembler) < 25_000
    assert assembler.counts.overflows >= 14_000


class HostileStream(RuleBasedStateMachine):
    """Anything in any order, with a clock that runs, jumps and is set back."""

    def __init__(self) -> None:
        super().__init__()
        self.assembler = WindowAssembler(modalities=(CAMERA, RADAR))
        self.now = 0.0
        self.count = 0
        self.in_work: list[Unit] = []
        self.expected: set[int] = set()
        self.given: set[int] = set()
        self.last_end: int | None = None
        self.dropped = 0
        self.restarts = 0

    def follow_restart(self) -> None:
        """After a restart nothing of before is owed any more."""
        counts = self.assembler.counts
        if counts.restarts != self.restarts:
            self.restarts = counts.restarts
            self.expected.clear()
            self.last_end = None
            self.dropped = counts.dropped_windows

    @rule(
        ms=st.floats(0.0, 120.0),
        modality=st.sampled_from([CAMERA, RADAR]),
        flight=st.floats(0.0, 150.0),
        announced=st.booleans(),
    )
    def receive(self, ms: float, modality: str, flight: float, announced: bool) -> None:
        self.now += ms
        self.count += 1
        each = unit(self.now - flight, modality, self.count)
        if announced:
            self.assembler.add_receipt(receipt(each), at(self.now))
            self.follow_restart()
        self.in_work.append(each)

    @precondition(lambda self: self.in_work)
    @rule(place=st.integers(0, 5), ms=st.floats(0.0, 80.0), times=st.integers(1, 3))
    def encode(self, place: int, ms: float, times: int) -> None:
        self.now += ms
        each = self.in_work.pop(place % len(self.in_work))
        used = []
        for _ in range(times):
            used.append(self.assembler.add_features(features(each), at(self.now)))
            self.follow_restart()
        assert used.count(True) <= 1
        if any(used):
            self.expected.add(each.sequence)

    @precondition(lambda self: self.in_work)
    @rule(outcome=st.sampled_from([o for o in UnitOutcome if o]))
    def give_up(self, outcome: UnitOutcome) -> None:
        self.assembler.add_receipt(receipt(self.in_work.pop(), outcome), at(self.now))
        self.follow_restart()

    @rule(available=st.integers(-(2**62), 2**62), delay=st.integers(-(2**62), 2**62))
    def receive_nonsense(self, available: int, delay: int) -> None:
        self.count += 1
        each = unit(self.now, sequence=self.count)
        for name, value in (('available_ns', available), ('stamp_ns', available - delay)):
            object.__setattr__(each, name, value)
        self.assembler.add_receipt(receipt(each), at(self.now))
        used = self.assembler.add_features(features(each), at(self.now))
        self.follow_restart()
        if used:
            self.expected.add(each.sequence)

    @rule(seconds=st.sampled_from([-3600.0, -10.0, -0.5, 0.3, 2.5, 60.0, 1.5e9]))
    def jump(self, seconds: float) -> None:
        self.now += 1e3 * seconds

    @rule()
    def poll(self) -> None:
        now_ns = at(self.now)
        for window in self.assembler.poll(now_ns):
            self.check(window, now_ns)
        next_end_ns = self.assembler.next_end_ns
        if next_end_ns is not None:
            assert now_ns < next_end_ns + 50 * MS, 'left open beyond the deadline'

    def check(self, window: ClosedWindow, now_ns: int) -> None:
        counts = self.assembler.counts
        if self.last_end is not None:
            steps, rest = divmod(window.end_ns - self.last_end, 100 * MS)
            assert rest == 0
            assert steps >= 1
            skipped = steps - 1
            assert skipped <= counts.dropped_windows - self.dropped
            self.dropped += skipped
        self.last_end = window.end_ns
        assert window.closed_ns == now_ns >= window.end_ns + 2 * MS
        if now_ns < window.end_ns + 50 * MS:
            assert window.late == ()
        for each in window.fresh:
            assert each.sequence in self.expected
            assert each.available_ns <= window.end_ns
        for each in window.members:
            assert window.end_ns - 500 * MS < each.available_ns <= window.end_ns
        new = {each.sequence for each in window.fresh}
        assert len(new) == len(window.fresh)
        assert not new & self.given
        self.given |= new
        self.expected -= new

    @invariant()
    def it_remembers_little(self) -> None:
        assert entries(self.assembler) < 400

    def teardown(self) -> None:
        """Once the clock runs on, every unit that was accepted has been given out."""
        # A clock that was set back shows with the next message.
        self.receive(ms=0.0, modality=CAMERA, flight=0.0, announced=True)
        for _ in range(120):
            self.now += 50.0
            self.poll()
        assert self.expected == set()


TestHostileStream = HostileStream.TestCase
TestHostileStream.settings = settings(max_examples=tries(50), stateful_step_count=50)
