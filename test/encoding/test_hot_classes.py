"""Which classes are met at present."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.encoding.hot_classes import HotClasses


def after(looks: list[int], classes: int = 5, **parameters: Any) -> HotClasses:
    hot = HotClasses(classes, **parameters)
    for label in looks:
        hot.met(label)
    return hot


def test_the_classes_that_make_up_nearly_all_looks_are_hot() -> None:
    hot = after([0] * 60 + [3] * 38 + [1] * 2)
    assert hot.hot.tolist() == [True, False, False, True, False]


def test_a_class_that_was_not_met_for_long_cools_down() -> None:
    looks = [1] * 100 + [2] * 20
    assert after(looks, window=64).hot[1]
    assert not after([*looks, *[2] * 200], window=64).hot[1]
    assert after([*looks, *[2] * 200], window=1000).hot[1]


@given(st.lists(st.integers(0, 6), max_size=300), st.floats(0.1, 1.0))
def test_hot_classes_hold_the_wanted_share_and_none_of_them_could_be_left_out(
    looks: list[int], coverage: float
) -> None:
    hot = after(looks, 7, coverage=coverage)
    scores, chosen = hot.scores, hot.hot
    if not looks:
        assert not chosen.any()
        return
    assert scores[chosen].sum() >= coverage * scores.sum() - 1e-6
    least = scores[chosen].min()
    assert scores[chosen].sum() - least < coverage * scores.sum()
