"""Whether people are placed: closed forms of hand-made runs, and GOSPA by brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_made_truth import at, decided, film, run, scene, standing, track, true_person
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mmedge_ros.core.data_types import Box, Track
from mmedge_ros.geometry.ego_motion import EgoMotion
from mmedge_ros.replay.ground_truth import GroundTruth, TrueObject
from mmedge_ros.report.placement import MISS, pair_tracks, placement_of
from mmedge_ros.report.report import report_of

INSTANTS = 101
SMALL = Box(300.0, 200.0, 308.0, 219.0)


def judged(
    tracks: Callable[[float], list[Track]], *people: TrueObject, late: float = 0.0
) -> dict[str, Any]:
    """The report of a second in which people stand still, decided every 100 ms."""
    truth = film(lambda _: people or (true_person(),))
    decisions = [decided(ms, *tracks(ms), published=ms + late) for ms in range(0, 1001, 100)]
    return placement_of(run(decisions), truth).report()


def test_a_perfect_tracker_has_worth_1_and_to_publish_nothing_0() -> None:
    perfect, nothing = judged(lambda _: [track()]), judged(lambda _: [])
    assert (perfect['worth'], perfect['gospa'], perfect['placed']) == (1.0, 0.0, 1.0)
    assert (nothing['worth'], nothing['gospa'], nothing['placed']) == (0.0, 2.0, 0.0)
    assert perfect['placement']['people'] == INSTANTS
    assert math.isnan(nothing['coverage'])


def test_an_error_of_1_m_halves_the_worth() -> None:
    found = judged(lambda _: [track(position=(10.0, 1.0, 0.9), spread=0.1)])
    assert (found['worth'], found['gospa']) == (pytest.approx(0.5), pytest.approx(1.0))
    assert (found['placed'], found['placed_by_range'], found['coverage']) == (1.0, 1.0, 0.0)
    # 1 m is 2.15 deviations of 0.47 m: the edge of the ellipse.
    assert judged(lambda _: [track(position=(10, 1, 0), spread=0.22)])['coverage'] == 1.0
    assert judged(lambda _: [track(position=(10, 1, 0), spread=0.21)])['coverage'] == 0.0
    far = judged(lambda _: [track(position=(10.0, 1.5, 0.9))])
    assert (far['placed'], far['placed_by_range']) == (1.0, 0.0)


def test_who_is_placed_late_waited_and_who_never_is_counts_apart() -> None:
    later = true_person(2, SMALL._replace(y1=260.0), (10.0, 6.0, 0.9))
    found = judged(lambda ms: [track()] if ms >= 300 else [], true_person(), later)
    assert found['wait_s_p95'] == pytest.approx(0.3)
    assert found['placement']['never'] == 1


@pytest.mark.parametrize('label', ['person', 'moving'])
def test_an_invention_costs_what_a_miss_does(label: str) -> None:
    ghost = track(9, None, position=(30.0, 0.0, 0.9), label=label)
    found = judged(lambda _: [track(), ghost])
    assert found['worth'] == pytest.approx(0.0)
    assert found['false_per_minute'] == pytest.approx(60.0 / (0.01 * INSTANTS))


def test_a_second_track_on_one_person_is_an_invention_and_not_false() -> None:
    found = judged(lambda _: [track(), track(2)])
    assert (found['worth'], found['false_per_minute']) == (0.0, 0.0)


def test_a_change_of_id_costs_1_m_once() -> None:
    found = judged(lambda ms: [track(1 if ms < 500 else 2)])
    assert found['placement']['switches'] == 1
    assert found['worth'] == pytest.approx(1.0 - 1.0 / (2.0 * INSTANTS))


def test_what_is_published_late_is_predicted_and_before_it_people_are_missed() -> None:
    def walker(ms: float) -> TrueObject:
        return true_person(position=(10.0, ms / 1e3, 0.0), velocity=(0.0, 1.0, 0.0))

    decisions = [
        decided(ms, track(position=(10, ms / 1e3, 0.9), velocity=(0, 1, 0)), published=ms + 500)
        for ms in range(0, 1001, 100)
    ]
    found = placement_of(run(decisions), film(lambda ms: [walker(ms)])).report()
    assert found['worth'] == found['placed'] == pytest.approx(51 / INSTANTS)


@pytest.mark.parametrize(
    ('person', 'reached'),
    [
        (true_person(box=SMALL), False),
        (true_person(visibility=0.4), False),
        (replace(true_person(), clear=False), False),
        (replace(true_person(box=None), radar=0.49), False),
        (replace(true_person(box=None), radar=0.5), True),
        (true_person(label='dog'), False),
    ],
)
def test_people_out_of_reach_are_neither_missed_nor_false(
    person: TrueObject, reached: bool
) -> None:
    tracked, missed = judged(lambda _: [track()], person), judged(lambda _: [], person)
    assert tracked['placement']['people'] == (INSTANTS if reached else 0)
    assert (tracked['gospa'], tracked['false_per_minute']) == (0.0, 0.0)
    assert missed['gospa'] == (2.0 if reached else 0.0)


def test_who_is_lost_by_a_sensor_is_kept_under_the_same_id() -> None:
    """The camera is blind from 0.3 to 0.8 s; the id changes at 0.5 s."""

    def people(ms: float) -> list[TrueObject]:
        return [replace(true_person(), clear=not 300 <= ms < 800, radar=0.9)]

    decisions = [decided(ms, track(1 if ms < 500 else 2)) for ms in range(0, 1001, 100)]
    found = placement_of(run(decisions), film(people, step=10))
    assert (found.gap, found.kept) == (50, 20)


def test_where_odometry_has_stopped_its_frame_stays_where_it_was() -> None:
    """Odometry is 1 m off to the left, and stops while the drone flies on at 5 m/s."""
    truth = GroundTruth(
        [
            scene(ms, true_person(), ego=standing(at(ms), (ms / 200, 0, 0)))
            for ms in range(0, 1001, 20)
        ]
    )
    record = run([decided(ms, track(position=(10, 1, 0.9))) for ms in range(0, 1001, 100)])
    record.ego = EgoMotion('odom', 'base_link', kept=None)
    for ms in range(0, 301, 10):
        state = standing(at(ms), (ms / 200, 1, 0))
        record.ego.add(replace(state, velocity=np.array([5.0, 0.0, 0.0])))
    assert placement_of(record, truth).report()['worth'] == pytest.approx(1.0)


def test_the_report_has_them_beside_accuracy() -> None:
    truth = film(lambda _: [true_person()])
    accuracy = report_of(run([decided(0, track())], truth))['accuracy']
    assert (accuracy['worth'], accuracy['false_per_minute'], accuracy['kept']) == (1.0, 0.0, None)


@given(
    arrays(float, st.tuples(st.integers(0, 4), st.integers(0, 3)), elements=st.floats(0.0, 6.0)),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_no_other_pairs_have_a_smaller_gospa(distances: np.ndarray, flags: list[bool]) -> None:
    count, tracks = distances.shape
    costs = np.where(flags[:tracks], 0.0, MISS)

    def gospa(pairs: list[tuple[int, int]]) -> float:
        alone = set(range(tracks)) - {track for _, track in pairs}
        own = sum(distances[pair] for pair in pairs)
        return float(own + MISS * (count - len(pairs)) + sum(costs[track] for track in alone))

    def choices() -> Any:
        for size in range(min(count, tracks) + 1):
            for people in itertools.combinations(range(count), size):
                for owners in itertools.permutations(range(tracks), size):
                    yield list(zip(people, owners, strict=True))

    best = pair_tracks(distances, np.array(flags[:tracks], bool))
    ours = gospa(list(zip(best[0].tolist(), best[1].tolist(), strict=True)))
    assert ours == pytest.approx(min(map(gospa, choices())))
