"""Model selection: the cheapest level that is expected to be good enough."""

from __future__ import annotations

import numpy as np
from hand_made_rivals import choices, linear_network
from hand_made_schedules import end_of
from hand_made_units import MS, features, person, unit

from mmedge_ros.data_types import CAMERA
from mmedge_ros.lab.policies.plugins import Facts
from mmedge_ros.lab.policies.seen import SEEN_FIELDS
from mmedge_ros.lab.policies.selection import TrainedSelector, cheapest_within

LEVELS = ('small', 'medium', 'large')


def selector(margin: float) -> TrainedSelector:
    """Each person costs the small level 0.1 of quality, and the medium one 0.02."""
    weights = np.zeros((len(SEEN_FIELDS), 3))
    weights[SEEN_FIELDS.index('strong')] = (0.1, 0.02, 0.0)
    network = linear_network(len(SEEN_FIELDS), weights, np.zeros(3))
    of = choices(*LEVELS)
    return TrainedSelector(network, margin, of.levels, of.by_level)


def chosen(people: int, margin: float = 0.05) -> str:
    picture = features(
        unit(400.0),
        detections=tuple(person(100.0 + 120.0 * n, 240.0) for n in range(people)),
        image_size=(640, 480),
    )
    facts = Facts(end_of(5), 500 * MS, {CAMERA: [picture]})
    return selector(margin).configuration(facts).of(CAMERA).level


def test_the_level_is_the_cheapest_that_falls_short_by_little() -> None:
    assert [chosen(people) for people in (0, 1, 2, 3)] == ['small', 'medium', 'medium', 'large']
    assert chosen(3, margin=0.5) == 'small'
    assert chosen(1, margin=0.0) == 'large'


def test_before_anything_is_seen_it_is_the_best() -> None:
    found = selector(1.0).configuration(Facts(end_of(0), 500 * MS))
    assert found.of(CAMERA).level == 'large'


def test_a_margin_is_counted_from_the_least_shortfall() -> None:
    # A network may be wrong by as much for all levels.
    shortfalls = np.array([[0.3, 0.2, 0.2], [0.0, 0.5, 0.1], [-0.2, -0.3, -0.31]])
    assert cheapest_within(shortfalls, 0.05).tolist() == [1, 0, 1]
