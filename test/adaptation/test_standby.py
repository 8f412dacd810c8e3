"""Perception that stands by wakes for the radar, a question and a timer, once for each."""

from __future__ import annotations

from mmedge_ros.adaptation.standby import BURST, PERIOD, Standby


def standing_by(now: float = 100.0) -> Standby:
    standby = Standby()
    standby.reset(now)
    return standby


def bursts(standby: Standby, begin: float, seconds: float, tracks: list[tuple[int, bool]]) -> int:
    before = standby.bursts
    for step in range(round(10 * seconds)):
        now = begin + step / 10
        standby.seen(tracks, now)
        standby.is_awake(now)
    return standby.bursts - before


def test_a_timer_wakes_every_five_seconds_for_less_than_a_second() -> None:
    standby = standing_by()
    awake = [standby.is_awake(100.0 + step / 100) for step in range(2000)]
    assert standby.bursts == 3
    assert sum(awake) == round(300 * BURST)
    assert not any(awake[: round(100 * PERIOD)])


def test_a_track_of_the_radar_alone_wakes_at_once_and_once_in_five_seconds() -> None:
    standby = standing_by()
    standby.seen([(7, False)], 101.0)
    assert standby.is_awake(101.0)
    assert not standby.is_awake(101.0 + BURST)
    standby.seen([(7, False)], 102.0)
    assert not standby.is_awake(102.0)
    standby.seen([(8, False)], 102.0)
    assert standby.is_awake(102.0)


def test_what_the_camera_saw_needs_no_burst_of_its_own() -> None:
    assert bursts(standing_by(), 100.0, 4.9, [(n, True) for n in range(9)]) == 0


def test_ten_tracks_of_the_radar_wake_no_more_often_than_one() -> None:
    assert bursts(standing_by(), 100.0, 4.0, [(n, False) for n in range(10)]) == 1


def test_a_question_wakes_and_many_wake_little_more() -> None:
    standby = standing_by()
    standby.asked(101.0)
    assert standby.is_awake(101.0)
    standby.asked(101.0 + BURST)
    assert not standby.is_awake(101.0 + BURST)
    assert standby.is_awake(103.1), 'it is not forgotten'
    asked = standing_by()
    awake = 0
    for step in range(2000):
        asked.asked(100.0 + step / 100)
        awake += asked.is_awake(100.0 + step / 100)
    assert awake <= 2000 * BURST / 1.9


def test_a_clock_that_steps_back_wakes_rather_than_sleeps_for_ever() -> None:
    standby = standing_by()
    assert standby.is_awake(3.0)


def test_a_flood_of_ids_is_forgotten() -> None:
    standby = standing_by()
    standby.seen([(n, True) for n in range(5000)], 100.0)
    assert len(standby._woken) <= 1000
