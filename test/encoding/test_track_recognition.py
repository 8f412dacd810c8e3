"""Looks at a track add up, sure labels are kept for a while, and what is new is said once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from mmedge_ros.core.data_types import (
    NS_PER_S,
    Box,
    DetectionKey,
    LabelSource,
    Novelty,
    Track,
    TrackLabel,
)
from mmedge_ros.encoding.track_recognition import (
    NamedLook,
    RecognitionParameters,
    TrackRecognition,
    recalled_shares,
)

CLASSES = ('person red', 'person blue', 'dog brown', 'ambulance')
LABELS = ('person', 'dog')
BOX = Box(10.0, 10.0, 20.0, 50.0)


def track(number: int, box: Box | None = BOX, label: str = 'person') -> Track:
    place = np.array([1.0, 2.0, 0.0])
    seen = DetectionKey(3, 0)
    return Track(
        number, label, 0.9, box, place, np.zeros(3), np.eye(6), ('camera',), 0.0, detection=seen
    )


def look(name: str, share: float = 0.97, **attributes: str) -> NamedLook:
    shares = np.full(len(CLASSES), (1.0 - share) / (len(CLASSES) - 1))
    shares[CLASSES.index(name)] = share
    values = {key: (value, 0.8) for key, value in attributes.items()}
    return NamedLook(shares, values, LabelSource.FULL, 4)


def subject(**changes: float) -> TrackRecognition:
    return TrackRecognition(CLASSES, LABELS, RecognitionParameters(**changes))  # type: ignore[arg-type]


def at(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def decide(
    recognition: TrackRecognition, tracks: Sequence[Track], name: str, seconds: float
) -> tuple[list[TrackLabel], list[Novelty]]:
    """Let a decision pass in which every track that is due looks like ``name``."""
    now_ns = at(seconds)
    sources = {}
    for one in recognition.due(tracks, now_ns):
        recognition.looked(one, look(name), now_ns)
        sources[one.id] = LabelSource.FULL
    labels = recognition.labels(tracks, sources, now_ns)
    return labels, recognition.novelties(tracks, labels, now_ns, 'odom')


def test_a_new_track_is_due_and_one_without_a_box_a_detection_or_any_size_is_not() -> None:
    recognition = subject()
    blind = Track(9, 'moving', 0.5, None, np.zeros(3), np.zeros(3), np.eye(6), ('radar',), 0.0)
    low = track(2, Box(0.0, 0.0, 5.0, 8.0))
    assert [one.id for one in recognition.due([track(1), blind, low], at(1.0))] == [1]


def test_in_one_decision_only_so_many_are_looked_at_and_those_never_seen_go_first() -> None:
    recognition = subject(looks=2)
    tracks = [track(1), track(2), track(3)]
    assert [one.id for one in recognition.due(tracks, at(1.0))] == [1, 2]
    for number in (1, 2):
        recognition.looked(track(number), look('person red'), at(1.0))
    assert recognition.due(tracks, at(1.1))[0].id == 3


def test_a_sure_label_is_reused_until_it_is_due_again() -> None:
    recognition = subject(refresh=2.0)
    for tenth in range(3):
        decide(recognition, [track(1)], 'person red', 1.0 + tenth / 10)
    assert recognition.due([track(1)], at(1.4)) == []
    (label,), _ = decide(recognition, [track(1)], 'person red', 1.4)
    assert (label.label, label.source) == ('person', LabelSource.REUSED)
    assert label.attributes == ('red',)
    assert [one.id for one in recognition.due([track(1)], at(3.3))] == [1]


def test_a_doubtful_track_is_looked_at_again_at_once_but_not_for_ever() -> None:
    recognition = subject()
    looked = 0
    for tenth in range(15):
        now_ns = at(1.0 + tenth / 10)
        for one in recognition.due([track(1)], now_ns):
            name = ('person red', 'dog brown', 'ambulance')[tenth % 3]
            recognition.looked(one, look(name), now_ns)
            looked += 1
        recognition.labels([track(1)], {}, now_ns)
    assert looked == 6


def test_where_looks_disagree_the_track_keeps_the_label_of_the_detector() -> None:
    recognition = subject()
    recognition.looked(track(1), look('dog brown', 0.5), at(1.0))
    (label,) = recognition.labels([track(1)], {1: LabelSource.FULL}, at(1.0))
    assert label.label == 'person'
    assert label.confidence < 0.75


def test_colours_of_one_label_do_not_speak_against_each_other() -> None:
    recognition = subject()
    recognition.looked(track(1), look('person red'), at(1.0))
    recognition.looked(track(1), look('person blue'), at(1.1))
    recognition.looked(track(1), look('person blue'), at(1.2))
    (label,) = recognition.labels([track(1)], {}, at(1.2))
    assert label.label == 'person'
    assert label.confidence > 0.9
    assert label.attributes == ('blue',)


def test_attributes_are_those_that_most_looks_say_and_a_no_is_not_said() -> None:
    recognition = subject()
    recognition.looked(track(1), look('person red', backpack='yes', bottom='blue'), at(1.0))
    recognition.looked(track(1), look('person red', backpack='yes', bottom='grey'), at(1.1))
    recognition.looked(track(1), look('person red', backpack='no', bottom='blue'), at(1.2))
    (label,) = recognition.labels([track(1)], {}, at(1.2))
    assert label.attributes == ('red', 'backpack', 'bottom blue')


def test_the_first_of_a_label_is_new_once_and_only_after_some_looks() -> None:
    recognition = subject()
    new = []
    for tenth in range(10):
        labels, novelties = decide(recognition, [track(1)], 'dog brown', 1.0 + tenth / 10)
        new += [(tenth, novelty) for novelty in novelties]
    ((tenth, novelty),) = new
    assert tenth == 2
    assert (novelty.label, novelty.track_id, novelty.reason) == ('dog', 1, 'the first dog')
    np.testing.assert_array_equal(novelty.position, (1.0, 2.0, 0.0))
    assert novelty.frame_id == 'odom'
    assert labels[0].is_novel


def test_a_label_is_new_again_after_it_was_absent_for_a_minute() -> None:
    recognition = subject(absent=60.0)
    new = []
    for begin in (0.0, 30.0, 95.0):
        for tenth in range(5):
            number = int(begin) + 1
            new += decide(recognition, [track(number)], 'dog brown', begin + tenth / 10)[1]
    assert [novelty.reason for novelty in new] == ['the first dog', 'no dog for 65 s']


def test_while_somebody_of_the_label_is_in_view_nobody_else_of_it_is_new() -> None:
    recognition = subject(absent=5.0)
    new = []
    for tenth in range(200):
        tracks = [track(1)] if tenth < 150 else [track(1), track(2)]
        new += decide(recognition, tracks, 'person red', tenth / 10)[1]
    assert [novelty.track_id for novelty in new] == [1]


def test_tracks_that_are_gone_are_forgotten_and_after_a_reset_all_is_new() -> None:
    recognition = subject()
    decide(recognition, [track(1)], 'person red', 0.0)
    decide(recognition, [track(2)], 'person red', 20.0)
    (label,) = recognition.labels([track(1), track(2)], {}, at(20.1))
    assert label.track_id == 2
    recognition.reset()
    assert recognition.labels([track(2)], {}, at(20.2)) == []


def test_a_recalled_class_counts_nearly_as_a_sure_look() -> None:
    shares = recalled_shares(1, len(CLASSES))
    assert shares.argmax() == 1
    assert shares[1] == pytest.approx(0.9)
    assert math.fsum(shares) == pytest.approx(1.0)
