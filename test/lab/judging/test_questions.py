"""Typed questions about simulated flights have exact answers, and are judged by kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_observations import STAMPS_NS, hovering, observed, walked

from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.judging.bundle_under_test import NOMINAL
from mmedge_lab.judging.question_truth import (
    TrueQuestion,
    known_when,
    owners_of,
    track_of,
    true_observations,
    true_questions,
)
from mmedge_lab.judging.questions import FIXED, OURS, AskedFlight, answered, bench
from mmedge_ros.core.data_types import NS_PER_S, Box
from mmedge_ros.core.device_profile import read_profile
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.questions.observations import Observations
from mmedge_ros.questions.question import Asked, Kind, Question
from mmedge_ros.questions.selection import KnownFlight
from mmedge_ros.replay.ground_truth import GroundTruth, TrueObject, TrueScene


def street() -> Observations:
    return observed(
        walked(1, place=(30.0, 4.0), velocity=(-2.0, 0.1), deviation=0.0),
        walked(2, place=(12.0, 8.0), deviation=0.0),
        walked(3, place=(10.0, -5.0), velocity=(0.5, -1.0), span=(3.0, 9.0), deviation=0.0),
        walked(4, 'car', place=(14.0, 9.0), velocity=(0.0, -3.0), deviation=0.0),
        drone=hovering(0.4),
    )


def known() -> dict[int, np.ndarray]:
    return known_when(street(), {number: number for number in (1, 2, 3, 4)})


def asking(right: object, asked: Asked = Asked.COUNT) -> TrueQuestion:
    return TrueQuestion(Question(Kind.COUNT, asked), right, 0, 0)


def test_questions_are_balanced_over_the_kinds_and_the_same_every_time() -> None:
    made = true_questions(street(), known(), 'street', 8)
    assert Counter(one.question.kind for one in made) == dict.fromkeys(Kind, 8)
    assert made == true_questions(street(), known(), 'street', 8)
    assert made != true_questions(street(), known(), 'park', 8)


def test_only_what_is_known_by_a_number_is_asked_for_by_it() -> None:
    made = true_questions(street(), {2: known()[2][:40]}, 'street', 20)
    anchors = [(place.anchor.track, one) for one in made for place in one.question.places]
    named = [(number, one) for one in made for number in one.question.tracks]
    asked = [(number, one) for number, one in (*anchors, *named) if number is not None]
    assert {number for number, _ in asked} == {2}
    assert max(one.begin_ns for _, one in asked) <= STAMPS_NS[39]
    moved = asked[0][1].of_tracks(lambda number: number + 70)
    assert 72 in (*moved.tracks, *(place.anchor.track for place in moved.places))


@pytest.mark.parametrize(
    ('one', 'right', 'wrong'),
    [
        (asking(True, Asked.EXISTS), True, False),
        (asking(3), 3, 4),
        (asking(12.0, Asked.DISTANCE), 13.1, 13.3),
        (asking(170.0, Asked.HEADING), -160.0, 120.0),
        (asking('still', Asked.HEADING), 'still', 10.0),
        (asking(10.0, Asked.HEADING), 20.0, 'still'),
        (asking((1.0, 2.0), Asked.PLACE), (1.0, 3.0), (4.0, 2.0)),
        (asking(7, Asked.EXTREME), 1, 2),
        (asking((7, 8), Asked.LIST), (1, 2, 3), (1,)),
        (asking(3), 3, None),
    ],
)
def test_an_answer_is_right_by_what_is_asked(
    one: TrueQuestion, right: object, wrong: object
) -> None:
    owners = {1: 7, 2: 8, 3: 8}
    assert one.is_right(right, owners)
    assert not one.is_right(wrong, owners)


def test_tracks_are_of_the_object_they_were_nearest_to_most_of_the_time() -> None:
    ours = observed(
        walked(11, place=(29.0, 4.0), velocity=(-2.0, 0.1), span=(0.0, 2.0)),
        walked(12, place=(30.5, 4.0), velocity=(-2.0, 0.1), span=(2.5, 10.0)),
        walked(13, place=(90.0, 0.0)),
    )
    owners = owners_of(ours, street())
    assert owners == {11: 1, 12: 1}
    stamps = ours.stamps_ns
    asked = replace(asking(0), begin_ns=int(stamps[10]), end_ns=int(stamps[10]))
    assert track_of(ours, owners, asked, 1) == 11
    later = replace(asked, begin_ns=int(stamps[50]), end_ns=int(stamps[60]))
    assert track_of(ours, owners, later, 1) == 12


def test_what_is_in_view_is_seen_and_where_nothing_is_known_the_camera_is_blind() -> None:
    def scene(number: int) -> TrueScene:
        place, still = np.array([5.0, 0.0, 0.0]), np.zeros(3)
        objects = (
            TrueObject(1, 'person', Box(0.0, 0.0, 10.0, 30.0), 1.0, place, still),
            TrueObject(2, 'person', Box(0.0, 0.0, 10.0, 30.0), 0.4, place, still),
            TrueObject(3, 'person', Box(0.0, 0.0, 5.0, 10.0), 1.0, place, still),
            TrueObject(4, 'person', None, 0.0, place, still),
        )
        stamp_ns = number * NS_PER_S // 10
        ego = EgoState(stamp_ns, Transform.identity())
        return TrueScene(stamp_ns, 'odom', objects, ego=ego)

    truth = GroundTruth([scene(number) for number in range(4)])
    true = true_observations(truth, np.array([0, NS_PER_S // 10, 5 * NS_PER_S]))
    assert [track.id for track in true.tracks] == [1]
    assert true.camera.tolist() == [True, True, False]
    assert true.drone is not None
    assert true.drone.positions.tolist() == [[0.0, 0.0, 0.0]] * 2


def test_our_tracks_are_judged_by_their_own_numbers_beside_a_fixed_answer() -> None:
    """Our tracks number people otherwise, and one of two is seen at another place."""
    true = observed(walked(7, place=(12.0, 3.0)), walked(8, place=(9.0, -4.0)), drone=hovering())
    ours = observed(walked(1, place=(12.2, 3.0)), walked(2, place=(9.0, -4.2)), drone=hovering())
    owners = owners_of(ours, true)
    assert owners == {1: 7, 2: 8}
    questions = true_questions(true, known_when(ours, owners), 'flight', 20)
    by_row = {
        name: answered(name, AskedFlight(KnownFlight(ours), owners, questions))
        for name in (OURS, FIXED)
    }
    assert by_row[OURS]['all right'] >= 0.9 * by_row[OURS]['all asked'] == 90.0
    assert by_row[OURS]['refused'] == 0
    assert 0 < by_row[FIXED]['all right'] < by_row[OURS]['all right']


def test_the_bench_names_its_rows_and_depends_on_the_profile(tmp_path: Path) -> None:
    (tmp_path / 'flight').mkdir()
    (tmp_path / 'flight' / 'flight.mcap').write_bytes(b'')
    request = BenchRequest((tmp_path / 'flight',), out=tmp_path / 'out')
    assert [row.name for row in bench(request).only([OURS]).rows] == [OURS, FIXED]
    # A machine's own times would make other decisions each time.
    assert read_profile(tmp_path / 'out/nominal.yaml').stages == NOMINAL.stages
    profile = Path(__file__).resolve().parents[3] / 'config' / 'profiles' / 'default.yaml'
    assert bench(request).key != bench(request, profile=str(profile)).key
