"""Who came into view, who came back, and under which id."""

from __future__ import annotations

from hand_made_truth import BOX, at, decided, film, run, track, true_person

from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.report.appearances import LEFT, times_in_view
from mmedge_ros.report.report import report_of

STEP = 100  # ms
HIDDEN_MS, AWAY_MS = 2000, 15_000


def in_view(*stretches: tuple[int, int], number: int = 1, label: str = 'person'):
    """An object that is in view during stretches of time, ms, and else behind something."""

    def objects(ms: float):
        seen = any(begin <= ms <= end for begin, end in stretches)
        return [true_person(number, BOX, label=label, visibility=1.0 if seen else 0.2)]

    return objects


def flight(*people, end: int) -> GroundTruth:
    return film(lambda ms: [item for of in people for item in of(ms)], end, STEP)


def test_whoever_was_hidden_for_a_moment_did_not_leave() -> None:
    assert times_in_view([at(0), at(1000), at(1000 + HIDDEN_MS)]) == [(at(0), at(3000))]
    assert times_in_view([at(20_000), at(0)]) == [(at(0), at(0)), (at(20_000), at(20_000))]


def test_whoever_leaves_the_picture_left() -> None:
    def crossing(ms: float):
        gone = 1000 < ms < 1000 + 1e3 * LEFT
        return [true_person(1, None if gone else BOX, visibility=0.0 if gone else 1.0)]

    truth = film(crossing, 15_000, STEP)
    found = accuracy_of(run([decided(100, track())], truth), truth).returns
    assert (found['new'], found['came_back']) == (1, 1)


def returns(first_id: int, second_id: int) -> dict:
    truth = flight(in_view((0, 1000), (1000 + AWAY_MS, 20_000)), end=20_000)
    decisions = [
        decided(ms, track(first_id if ms < 5000 else second_id)) for ms in range(100, 20_001, 100)
    ]
    report = report_of(run(decisions, truth))
    assert report['tracking']['returns'] == accuracy_of(run(decisions, truth), truth).returns
    return report


def test_a_report_tells_new_people_from_those_who_came_back() -> None:
    report = returns(7, 7)
    expected = {'new': 1, 'came_back': 1, 'same_id': 1, 'away_s': LEFT}
    assert report['tracking']['returns'] == expected
    sentences = ' '.join(report['at_a_glance']['sentences'])
    assert 'people came back 1 time, 1 of them under their earlier id' in sentences


def test_a_new_id_for_somebody_who_came_back_is_counted_as_such() -> None:
    assert returns(7, 8)['tracking']['returns']['same_id'] == 0
