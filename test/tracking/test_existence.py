"""Evidence for and against a track."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR, Appearance, Box, Measurement
from mmedge_ros.tracking.existence import (
    LEAST,
    MOST,
    after_measurement,
    after_miss,
    after_scan,
    camera_trust,
    gained,
)

PERSON = Measurement(
    0,
    'person',
    0.9,
    Box(0.0, 0.0, 10.0, 30.0),
    np.zeros(3),
    np.eye(3),
    0.0,
    1.0,
    np.zeros(3),
    (CAMERA,),
    'height',
)
CLUSTER = replace(PERSON, box=None, seen_by=(RADAR,), range_from='cluster')


def scored(score: float) -> Measurement:
    return replace(PERSON, score=score)


def test_a_sure_detection_counts_one_and_a_better_one_no_more() -> None:
    assert gained(scored(0.8)) == gained(scored(0.99)) == 1.0


def test_a_poor_detection_speaks_against_what_is_not_known_and_not_against_what_is() -> None:
    assert after_measurement(0.0, scored(0.1), is_confirmed=False) < 0.0
    assert after_measurement(0.0, scored(0.1), is_confirmed=True) == 0.0


def test_a_false_alarm_in_every_picture_never_becomes_evidence_enough() -> None:
    evidence = 0.0
    for _ in range(1000):
        evidence = after_measurement(evidence, scored(0.32), is_confirmed=False)
    assert evidence < 1.0


def test_clusters_alone_become_a_sure_detection_in_time() -> None:
    evidence = [0.0]
    for _ in range(12):
        evidence.append(after_measurement(evidence[-1], CLUSTER, is_confirmed=False))
    assert evidence[3] < 1.0 < evidence[5]


def test_what_every_second_scan_misses_never_becomes_sure() -> None:
    evidence = 0.0
    for _ in range(100):
        evidence = after_measurement(evidence, CLUSTER, is_confirmed=False)
        assert evidence < 1.0
        evidence = after_scan(evidence)


@pytest.mark.parametrize(
    ('contrast', 'trust'), [(0.01, 0.0), (0.05, 0.5), (0.2, 1.0), (math.nan, 1.0)]
)
def test_a_camera_is_trusted_as_far_as_its_pictures_show_something(
    contrast: float, trust: float
) -> None:
    assert camera_trust(Appearance(0.5, contrast, 0.1)) == pytest.approx(trust)


@given(st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), max_size=60), st.booleans())
def test_evidence_stays_within_its_limits(scores: list[float | None], is_known: bool) -> None:
    evidence = 0.0
    for score in scores:
        evidence = (
            after_miss(evidence, 1.0)
            if score is None
            else after_measurement(evidence, scored(score), is_known)
        )
        assert LEAST <= evidence <= MOST
