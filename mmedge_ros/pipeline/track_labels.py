"""What a recogniser says of tracks, attached to the tracks of decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mmedge_ros.core.data_types import Track, TrackLabel

# Only a recogniser that names tracks that there are not makes so many.
_MOST = 1000


class TrackLabels:
    """The newest label of each track; belongs to the thread of the pipeline."""

    def __init__(self) -> None:
        self._labels: dict[int, TrackLabel] = {}

    def reset(self) -> None:
        """Forget all labels; ids are not used again."""
        self._labels.clear()

    def add(self, labels: Iterable[TrackLabel]) -> None:
        """Enter labels; of too many the oldest are forgotten."""
        for label in labels:
            self._labels.pop(label.track_id, None)
            self._labels[label.track_id] = label
        while len(self._labels) > _MOST:
            del self._labels[next(iter(self._labels))]

    def attached(self, tracks: Sequence[Track]) -> tuple[Track, ...]:
        """Return tracks with what was recognised of them."""
        if not self._labels:
            return tuple(tracks)
        labelled = []
        for track in tracks:
            label = self._labels.get(track.id)
            if label is not None:
                track = replace(track, label=label.label, recognised=label)
            labelled.append(track)
        return tuple(labelled)
