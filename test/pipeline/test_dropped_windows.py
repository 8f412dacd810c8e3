"""Windows that nobody asks for are dropped; whoever listens is told of those that close."""

from __future__ import annotations

from hand_made_units import at, features, unit

from mmedge_ros.pipeline.window_assembler import ClosedWindow, WindowAssembler


def test_units_of_dropped_windows_belong_to_those_after_them() -> None:
    assembler = WindowAssembler()
    assembler.add_features(features(unit(50.0)), at(60.0))
    assembler.drop_until(at(300.0))
    (window,) = assembler.poll(at(310.0))
    assert window.end_ns == at(300.0)
    assert [of.sequence for of in window.fresh] == [0]
    assert assembler.counts.dropped_windows == 2


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
