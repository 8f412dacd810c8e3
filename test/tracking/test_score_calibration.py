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
    assert people > score_of(0.9)
    assert nobody < score_of(0.1)


def test_one_score_for_all_means_what_all_are_worth() -> None:
    people, nobody = learned(0.9, 0.9)
    assert people == nobody
    assert score_of(0.35) < people < score_of(0.65)


def test_a_detector_that_is_right_is_believed_whatever_its_scores() -> None:
    calibration = ScoreCalibration()
    for number in range(60):
        taken = calibration.take(number * 40 * MS, [box(100.0, 0.15), box(300.0, 0.2)])
    assert all(one.score > score_of(0.95) for one in taken)


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
def test_whatever_comes_scores_stay_finite_and_in_order(
    pictures: list[list[tuple[float, float]]],
) -> None:
    calibration = ScoreCalibration()
    for number, seen in enumerate(pictures):
        given_boxes = [box(*one) for one in seen]
        taken = calibration.take((number + 1) * 40 * MS, given_boxes)
        assert [one.box for one in taken] == [one.box for one in given_boxes]
        order = np.argsort([one.score for one in given_boxes], kind='stable')
        scores = np.array([one.score for one in taken])[order]
        assert np.isfinite(scores).all()
        assert (np.diff(scores) >= -1e-9).all()


def test_the_score_of_a_chance_gains_what_it_says() -> None:
    assert abs(score_of(0.5) - 0.32) < 1e-9
    measured = [gained_of(score_of(chance)) for chance in (0.2, 0.5, 0.8, 0.99)]
    assert measured == sorted(measured)
    assert measured[-1] == 1.0


def gained_of(score: float) -> float:
    class Boxed:
        box = Box(0.0, 0.0, 1.0, 1.0)

        def __init__(self) -> None:
            self.score = score

    return gained(Boxed())  # type: ignore[arg-type]
