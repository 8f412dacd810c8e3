"""What a recogniser says is attached to the tracks it is about."""

from __future__ import annotations

import numpy as np

from mmedge_ros.core.data_types import Track, TrackLabel
from mmedge_ros.pipeline.track_labels import TrackLabels


def track(number: int) -> Track:
    return Track(
        number, 'person', 0.9, None, np.zeros(3), np.zeros(3), np.eye(6), ('camera',), 0.0
    )


def test_a_label_goes_to_its_track_and_the_newest_one_counts() -> None:
    labels = TrackLabels()
    labels.add([TrackLabel(2, 'person', 0.9), TrackLabel(2, 'dog', 0.95, ('brown',))])
    first, second = labels.attached([track(1), track(2)])
    assert (first.label, first.recognised) == ('person', None)
    assert second.label == 'dog'
    assert second.recognised is not None
    assert second.recognised.attributes == ('brown',)


def test_labels_of_tracks_that_there_are_not_do_not_pile_up() -> None:
    labels = TrackLabels()
    labels.add(TrackLabel(number, 'dog', 0.9) for number in range(5000))
    old, new = labels.attached([track(1), track(4999)])
    assert (old.label, new.label) == ('person', 'dog')
