"""Imputation: pictures made up from those before."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_rivals import going_on
from hand_made_units import features, person, unit

from mmedge_lab.policies.imputation import (
    PERSON_FIELDS,
    PersonFeatures,
    displacement,
    moved_boxes,
    person_features,
)
from mmedge_ros.core.data_types import CAMERA, Box, Detection, UnitFeatures


def picture(ms: float, *people: Detection) -> UnitFeatures:
    return features(unit(ms), detections=people, image_size=(640, 480))


def missing(ms: float, modality: str = CAMERA) -> UnitFeatures:
    return features(unit(ms, modality), image_size=(640, 480))


def middles(unit_made: UnitFeatures | None) -> list[float]:
    assert unit_made is not None
    return sorted((d.box.x0 + d.box.x1) / 2.0 for d in unit_made.detections)


def test_people_go_on_as_they_went() -> None:
    ready = {
        CAMERA: [
            picture(400.0, person(100.0, 240.0), person(500.0, 240.0)),
            picture(433.0, person(106.0, 240.0), person(500.0, 240.0)),
        ]
    }
    made = going_on().impute(missing(466.0), ready)
    assert middles(made) == pytest.approx([112.0, 500.0], abs=0.1)
    assert made is not None
    assert made.stamp_ns == missing(466.0).stamp_ns
    assert {d.label for d in made.detections} == {'person'}
    # Twice as long ahead, twice as far.
    assert middles(going_on().impute(missing(499.0), ready)) == pytest.approx([118.0, 500.0], 0.01)


def test_inputs_of_the_network_are_motion_in_widths_and_time_in_seconds() -> None:
    pictures = [
        picture(367.0, person(94.0, 240.0)),
        picture(400.0, person(100.0, 240.0), person(500.0, 240.0)),
        picture(433.0, person(112.0, 240.0, score=0.8), person(512.0, 240.0)),
    ]
    people, inputs = person_features(missing(466.0).stamp_ns, pictures)
    assert inputs.shape == (2, len(PERSON_FIELDS))
    rows = {p.score: PersonFeatures(*row) for p, row in zip(people, inputs.tolist(), strict=True)}
    row = rows[0.8]
    assert row.lag == row.since == pytest.approx(0.033)
    assert row.right == pytest.approx(0.2 / 0.033)
    assert row.onward_right == pytest.approx(0.2)
    assert row.earlier_right == pytest.approx(0.1 / 0.033)
    assert row.has_long_past == 1.0
    assert row.score_change == pytest.approx(-0.1)
    # The other one went as far, and there was none of it in the picture before.
    assert row.common_right == pytest.approx(0.2 / 0.033)
    assert rows[0.9].has_long_past == 0.0
    assert (row.left_margin, row.people) == (1.0, 2.0)


def test_a_displacement_leads_from_one_box_to_the_other() -> None:
    old, new = Box(10.0, 20.0, 50.0, 120.0), Box(14.0, 10.0, 60.0, 130.0)
    [made] = moved_boxes([old], np.array([displacement(old, new)]))
    assert made == pytest.approx(new)
