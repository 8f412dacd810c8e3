"""What scores mean, learned from whether boxes are found again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box, Detection
from mmedge_ros.tracking.existence import gained, score_of
from mmedge_ros.tracking.score_calibration import ScoreCalibration

MS = 1_000_000


def box(x: float, score: float) -> Detection:
    return Detection(Box(x, 50.0, x + 20.0, 110.0), score, 'person')


def picture(rng: np.random.Generator, people: float, nobody: float) -> list[Detection]:
    """Two people who stand still, and two boxes that are somewhere else each time."""
    true = [box(100.0, people), box(300.0, people)]
    return [*true, *(box(float(x), nobody) for x in rng.uniform(400.0, 4000.0, 2))]


def learned(people: float, nobody: float, pictures: int = 60, period: int = 40) -> list[float]:
    """Return what scores of people and of nobody have become."""
    calibration, rng = ScoreCalibration(), np.random.default_rng(3)
    for number in range(pictures):
        taken = calibration.take(number * period * MS, picture(rng, people, nobody))
    return [taken[0].score, taken[-1].score]


def test_squeezed_scores_are_told_apart_by_what_is_found_again() -> None:
    people, nobody = learned(0.62, 0.58)
    assert people > score_of(0.8)
    assert nobody < score_of(0.1)


def test_of_one_score_a_new_box_says_less_than_one_that_was_there_before() -> None:
    calibration, rng = ScoreCalibration(), np.random.default_rng(3)
    for number in range(60):
        calibration.take(number * 40 * MS, picture(rng, 0.9, 0.9))
    old, new = calibration.take(60 * 40 * MS, [box(100.0, 0.9), box(5000.0, 0.9)])
    assert gained_of(old.score) == 1.0
    assert gained_of(new.score) < 0.0


def test_while_the_camera_turns_fast_scores_are_left_as_they_are() -> None:
    calibration, rng = ScoreCalibration(), np.random.default_rng(3)
    for number in range(60):
        calibration.take(number * 40 * MS, picture(rng, 0.62, 0.58))
    for number in range(60, 90):
        turned = [box(100.0 + 50.0 * (number - 59), 0.62), box(300.0 + 50.0 * (number - 59), 0.62)]
        assert calibration.take(number * 40 * MS, turned) == tuple(turned)
    calibration.take(90 * 40 * MS, turned)
    assert all(one.score > score_of(0.8) for one in calibration.take(91 * 40 * MS, turned))


def test_pictures_that_were_not_encoded_teach_nothing_and_are_read_as_those_before() -> None:
    calibration, rng = ScoreCalibration(), np.random.default_rng(3)
    for number in range(60):
        seen = picture(rng, 0.9, 0.9)
        taken = calibration.take(number * 40 * MS, seen)
        for later in (10, 20):
            followed = calibration.take((number * 40 + later) * MS, seen, followed=True)
            assert [one.score for one in followed] == [one.score for one in taken]
    assert taken[0].score > taken[-1].score


def test_after_a_restart_of_time_it_learns_on() -> None:
    calibration, rng = ScoreCalibration(), np.random.default_rng(3)
    calibration.take(10**15, picture(rng, 0.62, 0.58))
    calibration.restart()
    for number in range(1, 60):
        taken = calibration.take(number * 40 * MS, picture(rng, 0.62, 0.58))
    assert taken[-1].score < score_of(0.1)


def test_a_weak_box_that_stays_remains_weak() -> None:
    calibration = ScoreCalibration()
    for number in range(60):
        seen = (box(100.0, 0.15), box(300.0, 0.2))
        assert calibration.take(number * 40 * MS, seen) == seen


def test_nothing_is_learned_from_few_pictures_or_pictures_far_apart() -> None:
    assert learned(0.62, 0.58, pictures=5) == [0.62, 0.58]
    assert learned(0.62, 0.58, period=400) == [0.62, 0.58]


def test_a_picture_that_comes_late_is_read_and_not_learned_from() -> None:
    calibration, rng = ScoreCalibration(), np.random.default_rng(3)
    for number in range(60):
        calibration.take(number * 40 * MS, picture(rng, 0.62, 0.58))
    before = calibration.take(59 * 40 * MS, [box(100.0, 0.6)])
    assert calibration.take(3 * 40 * MS, [box(100.0, 0.6)]) == before


@given(
    st.lists(
        st.lists(st.tuples(st.floats(0.0, 1000.0), st.floats(0.0, 1.0)), max_size=8),
        min_size=20,
        max_size=40,
    )
)
def test_whatever_comes_boxes_stay_and_scores_are_finite(
    pictures: list[list[tuple[float, float]]],
) -> None:
    calibration = ScoreCalibration()
    for number, seen in enumerate(pictures):
        given_boxes = [box(*one) for one in seen]
        taken = calibration.take((number + 1) * 40 * MS, given_boxes)
        assert [one.box for one in taken] == [one.box for one in given_boxes]
        assert np.isfinite([one.score for one in taken]).all()


def test_the_score_of_a_chance_gains_what_it_says() -> None:
    assert abs(score_of(0.5) - 0.42) < 1e-9
    measured = [gained_of(score_of(chance)) for chance in (0.2, 0.5, 0.8, 0.99)]
    assert measured == sorted(measured)
    assert measured[-1] == 1.0


def gained_of(score: float) -> float:
    class Boxed:
        box = Box(0.0, 0.0, 1.0, 1.0)

        def __init__(self) -> None:
            self.score = score

    return gained(Boxed())  # type: ignore[arg-type]
