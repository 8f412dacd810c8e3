"""Runs judged by a truth made by hand: every figure can be reckoned in the head."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_truth import (
    BOX,
    MS,
    at,
    decided,
    film,
    moved,
    run,
    scene,
    standing,
    track,
    true_person,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.accuracy import LEFT, accuracy_of, times_in_view
from mmedge_ros.report.report import report_of

wild = st.floats(allow_nan=True, allow_infinity=True)
edges = st.one_of(st.floats(-50.0, 700.0), wild)
somewhere = st.tuples(wild, wild, st.floats(-5.0, 5.0))
STEP = 100  # ms
HIDDEN_MS, AWAY_MS = 2000, 15_000

SPEED = 100.0  # px/s to the right, of everybody who walks
KEYS = {
    'mean_iou',
    'mean_iou_20px',
    'streaming_mean_iou',
    'precision',
    'recall',
    'range_error_m',
    'position_error_m',
    'position_error_at_20m',
    'nees',
    'counts',
}
SMALL = Box(500.0, 100.0, 506.0, 112.0)


def walker(ms):
    """One person who crosses the picture, 10 m ahead, at 1 m/s to the right."""
    seconds = ms / 1000.0
    return [
        true_person(
            box=moved(BOX, SPEED * seconds),
            position=(10.0, -seconds, 0.0),
            velocity=(0.0, -1.0, 0.0),
        )
    ]


def seen(ms, number=1, **more):
    """A track that is exactly where the walker is."""
    seconds = ms / 1000.0
    known = {
        'box': moved(BOX, SPEED * seconds),
        'position': (10.0, -seconds, 0.9),
        'velocity': (0.0, -1.0, 0.0),
        'drift': (SPEED, 0.0),
    }
    return track(number, **(known | more))


def perfect(end=1000, step=100, delay=0.0, **more):
    return [
        decided(ms, seen(ms, **more), published=ms + delay) for ms in range(step, end + 1, step)
    ]


def judged(decisions, truth=None):
    truth = truth or film(walker)
    result = accuracy_of(run(decisions, truth), truth)
    assert result is not None
    return result.report()


def overlap(right):
    """IoU of a box with itself, moved so many pixels to the right."""
    return max(40.0 - right, 0.0) / (40.0 + right)


def test_perfect_tracks_have_perfect_figures():
    result = judged([decided(0, seen(0)), *perfect()])
    assert set(result) >= KEYS
    for key in ('mean_iou', 'mean_iou_20px', 'streaming_mean_iou', 'precision', 'recall'):
        assert result[key] == pytest.approx(1.0), key
    assert result['range_error_m'] == pytest.approx(0.0, abs=0.01)
    assert result['position_error_m'] == pytest.approx(0.0, abs=1e-9)
    assert result['counts']['windows'] == result['counts']['people'] == 11
    assert result['scenarios'] == ['meadow_day_near']


def test_before_the_first_publication_everybody_is_missed():
    # Of the 101 instants of the truth the first 50 come before the decision at 500 ms.
    result = judged([decided(500, seen(500))])
    assert result['streaming_mean_iou'] == pytest.approx(51 / 101)
    assert result['mean_iou'] == pytest.approx(1.0)


def test_a_late_decision_lowers_the_streaming_iou_by_what_its_boxes_lag_behind():
    # Boxes that stand still, published every 100 ms and 30 ms late: at an instant t after a
    # publication the box is 30 ms + t old and 100 px/s behind.
    late = [
        decided(ms, seen(ms, drift=(0.0, 0.0)), published=ms + 30) for ms in range(-100, 1001, 100)
    ]
    result = judged(late)
    lags = [SPEED * (30 + 10 * k) / 1000.0 for k in range(10)]
    cycle = [overlap(lag) for lag in lags]
    # The instants 0, 10 and 20 ms still have the decision of -100 ms; so has no other.
    expected = ([overlap(SPEED * (100 + t) / 1000.0) for t in (0, 10, 20)] + cycle * 10)[:101]
    assert result['streaming_mean_iou'] == pytest.approx(np.mean(expected), abs=1e-9)
    at_once = [overlap(SPEED * 10 * k / 1000.0) for k in range(10)] * 10 + [1.0]
    assert result['streaming_mean_iou_at_once'] == pytest.approx(np.mean(at_once), abs=1e-9)
    assert result['mean_iou'] == pytest.approx(1.0)


def test_updates_count_in_streaming_accuracy_alone():
    truth = film(walker)
    still = {'drift': (0.0, 0.0)}
    record = run([decided(ms, seen(ms, **still)) for ms in range(0, 1001, 100)], truth)
    alone = accuracy_of(record, truth).report()
    record.updates = [decided(ms, seen(ms, **still)) for ms in range(50, 1001, 100)]
    both = accuracy_of(record, truth).report()
    # A box that stands is at most 40 ms behind where it was 90 ms.
    twice = [overlap(SPEED * 10 * k / 1000.0) for k in range(5)] * 20 + [1.0]
    assert both['streaming_mean_iou'] == pytest.approx(np.mean(twice), abs=1e-9)
    assert both['streaming_mean_iou_decisions'] == alone['streaming_mean_iou']
    assert alone['streaming_mean_iou_decisions'] == alone['streaming_mean_iou']
    changed = {k for k in both if not k.startswith('by_') and repr(both[k]) != repr(alone[k])}
    streaming = 'streaming_mean_iou'
    assert changed == {streaming, f'{streaming}_at_once'}


def test_a_box_that_knows_its_velocity_makes_up_for_the_delay():
    early = [decided(0, seen(0))]
    assert judged(early + perfect(delay=80.0))['streaming_mean_iou'] == pytest.approx(1.0)


def test_nothing_published_later_changes_what_was_known_before():
    truth = film(walker)
    base = perfect(500, delay=10.0, drift=(0.0, 0.0))
    oracle = [
        decided(100, *(seen(ms) for ms in range(0, 1000, 50)), state=100, published=700),
        decided(900, seen(900), state=900, published=905),
    ]
    plain, reports = (accuracy_of(run(d, truth), truth) for d in (base, [*oracle, *base]))
    assert plain is not None
    assert reports is not None
    before = plain.stream.stamps_ns < at(700)
    assert np.array_equal(plain.stream.overlaps[before], reports.stream.overlaps[before])
    assert not np.array_equal(plain.stream.overlaps, reports.stream.overlaps)


def test_the_latest_published_answers_and_not_the_newest_window():
    # The wrong one comes later although its window ended first.
    right, wrong = decided(200, seen(200), published=210), decided(100, published=400)
    result = accuracy_of(run([right, wrong]), film(walker))
    assert result is not None
    times = (result.stream.stamps_ns - at(0)) // MS
    assert result.stream.overlaps[times == 300].tolist() == [pytest.approx(1.0)]
    assert result.stream.overlaps[times == 400].tolist() == [0.0]


def test_who_is_missed_counts_as_zero():
    result = judged([decided(100, seen(100)), decided(200)])
    assert (result['mean_iou'], result['recall'], result['precision']) == (0.5, 0.5, 1.0)


def test_a_window_without_a_decision_counts_as_one_in_which_all_are_missed():
    result = judged([decided(100, seen(100)), decided(400, seen(400))])
    assert result['counts']['windows'] == 4
    assert result['counts']['windows_without_decision'] == 2
    assert result['mean_iou'] == pytest.approx(0.5)


def test_a_box_where_nobody_is_lowers_precision_alone():
    ghost = track(2, box=moved(BOX, -200.0))
    result = judged([decided(ms, seen(ms), ghost) for ms in range(100, 1001, 100)])
    assert (result['precision'], result['recall'], result['mean_iou']) == (0.5, 1.0, 1.0)
    assert result['counts']['false_positives'] == 10


def test_small_people_count_from_8_px_on_and_in_the_20_px_figures_not_at_all():
    truth = film(lambda ms: [*walker(ms), true_person(2, box=SMALL)])
    result = judged([decided(0, seen(0)), *perfect()], truth)
    assert result['mean_iou'] == pytest.approx(0.5)
    assert result['mean_iou_20px'] == pytest.approx(1.0)
    sizes = result['by_size']
    assert list(sizes) == ['8-20', '20-40', '40-80', '80+']
    assert (sizes['8-20']['people'], sizes['8-20']['recall']) == (11, 0.0)
    assert (sizes['80+']['people'], sizes['80+']['recall']) == (11, 1.0)
    assert sizes['20-40']['people'] == 0
    assert math.isnan(sizes['20-40']['mean_iou'])


def test_strata_of_occlusion_and_range():
    truth = film(
        lambda ms: [
            *walker(ms),
            true_person(2, box=SMALL, visibility=0.6, position=(25.0, 9.0, 0)),
        ]
    )
    result = judged(perfect(), truth)
    assert result['by_occlusion']['partly']['people'] == 10
    assert result['by_occlusion']['free']['recall'] == 1.0
    assert result['by_range']['20-30']['people'] == 10
    assert result['by_range']['10-20']['people'] == 10
    assert result['by_range']['10-20']['position_error_m'] == pytest.approx(0.0, abs=1e-9)
    assert math.isnan(result['by_range']['20-30']['position_error_m'])


def test_the_errors_of_a_track_that_is_off_by_what_is_known():
    off = {'position': (10.6, -0.8, 0.9), 'velocity': (0.3, 0.0, 0.0)}
    truth = film(lambda ms: [true_person(velocity=(0.0, 0.4, 0.0))])
    result = judged([decided(0, track(**off))], truth)
    assert result['position_error_m'] == pytest.approx(1.0)
    assert result['range_error_m'] == pytest.approx(
        math.hypot(10.6, 0.8, 0.9) - math.hypot(10.0, 0.85)
    )
    # Of a variance of 0.1 in every direction.
    assert result['nees']['mean'] == pytest.approx((1.0 + 0.25) / 0.1)
    assert result['nees']['dof'] == 4
    assert result['nees']['in_bounds'] is False


@pytest.mark.parametrize(('ahead', 'counts'), [(15.0, False), (20.0, True), (25.0, False)])
def test_the_error_at_20_m_is_that_of_people_about_there(ahead, counts):
    truth = film(lambda ms: [true_person(position=(ahead, 0.0, 0.0))])
    result = judged([decided(0, track(position=(ahead, 0.5, 0.9)))], truth)
    assert result['counts']['located_at_20m'] == counts
    expected = pytest.approx(0.5) if counts else pytest.approx(math.nan, nan_ok=True)
    assert result['position_error_at_20m'] == expected


def test_errors_of_tracks_as_wrong_as_they_say_are_in_bounds_and_of_surer_ones_not():
    random = np.random.default_rng(11)
    covariance = np.diag([0.5, 0.3, 0.1, 0.4, 0.2, 0.1])
    # One person each 20 m, each seen once a second.
    places = [np.array([10.0, 20.0 * n, 0.0]) for n in range(25)]
    boxes = [moved(BOX, 0.0, 110.0 * n) for n in range(25)]
    people = [true_person(n, boxes[n], places[n]) for n in range(25)]

    def decision(ms, claim):
        tracks = []
        for n, place in enumerate(places):
            error = random.multivariate_normal(np.zeros(6), covariance)
            tracks.append(
                track(n, boxes[n], place + error[:3], error[3:], covariance=covariance * claim)
            )
        return decided(ms, *tracks)

    truth = film(lambda ms: people, 10000, 250)
    for claim, verdict in ((1.0, True), (0.25, False), (4.0, False)):
        result = judged([decision(ms, claim) for ms in range(0, 10000, 500)], truth)
        assert result['nees']['samples'] == 250, 'one per track and second'
        assert result['nees']['in_bounds'] is verdict


def test_a_decision_at_whose_state_time_the_truth_is_silent_is_left_out():
    truth = GroundTruth([scene(ms, *walker(ms)) for ms in (*range(0, 200, 20), 900, 920)])
    result = judged([decided(100, seen(100)), decided(500, seen(500))], truth)
    assert result['counts']['windows_without_truth'] == 1
    assert result['counts']['people'] == 1


def test_without_people_or_decisions_figures_are_not_numbers_but_no_error():
    nobody = judged(perfect(), film(lambda ms: []))
    assert math.isnan(nobody['mean_iou'])
    assert math.isnan(nobody['streaming_mean_iou'])
    assert nobody['precision'] == 0.0, 'boxes where nobody is'
    silent = judged([])
    assert math.isnan(silent['mean_iou'])
    assert silent['streaming_mean_iou'] == 0.0, 'people were there and nothing was said'


def test_an_empty_truth_judges_nothing():
    assert accuracy_of(run(perfect()), GroundTruth([])) is None


def test_the_report_holds_the_figures_and_is_null_without_truth():
    with_truth = report_of(run(perfect(), film(walker)))
    assert with_truth['accuracy']['mean_iou'] == 1.0
    assert with_truth['tracking']['mota'] == 1.0
    without = report_of(run(perfect()))
    assert (without['accuracy'], without['tracking']) == (None, None)


def test_a_drone_that_moves_changes_nothing():
    # Truth and tracks live in odom; only the ranges depend on where the drone is.
    def ego(ms):
        return standing(at(ms), (ms / 100.0, 0.0, 0.0))

    truth = GroundTruth([scene(ms, *walker(ms), ego=ego(ms)) for ms in range(0, 1001, 20)])
    result = judged(perfect(), truth)
    assert result['position_error_m'] == pytest.approx(0.0, abs=1e-9)
    assert result['by_range']['0-10']['people'] == 10


def is_sound(value):
    if isinstance(value, dict):
        return all(is_sound(item) for item in value.values())
    if isinstance(value, list):
        return all(is_sound(item) for item in value)
    return value is None or isinstance(value, str | bool | int) or math.isfinite(value)


@settings(max_examples=40)
@given(
    tracks=st.lists(
        st.builds(
            track,
            st.integers(1, 4),
            st.none() | st.builds(Box, edges, edges, edges, edges),
            somewhere,
            somewhere,
            st.sampled_from(['person', 'moving', 'dog', '']),
            wild,
            st.tuples(wild, wild),
        ),
        max_size=4,
        unique_by=lambda t: t.id,
    ),
    state=st.integers(-100, 1100),
    published=st.integers(-100, 2000),
)
def test_whatever_tracks_say_every_figure_is_finite_or_null(tracks, state, published):
    truth = film(lambda ms: [*walker(ms), true_person(2, box=None)], 200)
    decisions = [decided(100, *tracks, state=state, published=published), decided(300, seen(150))]
    report = report_of(run(decisions, truth))
    assert is_sound(report['accuracy'])
    assert is_sound(report['tracking'])
    for key in ('mean_iou', 'streaming_mean_iou', 'precision', 'recall'):
        value = report['accuracy'][key]
        assert value is None or 0.0 <= value <= 1.0


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
