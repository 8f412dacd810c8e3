"""Streams of looks as a flight would bring them, drawn from the crops that judge.

Objects come one after another, each as a track of its own: its crops in the order of time, six at
most. Which class comes next is drawn. Classes with few crops do not come, because the same crops
would come again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.rivals.smtm.subject import DRIFT_LEVELS, LabelledCrops
from mmedge_ros.core.data_types import FloatArray

VISIT = 6
# So many crops a class must have to come, where two classes or more do.
FEWEST_CROPS = 30
SCENE = 300


class StreamKind(NamedTuple):
    """How the classes of a stream are drawn.

    ``active`` classes have equal shares; without, all have, the most frequent one ``tail`` times
    as much as the rarest. With ``switches`` other ones are active in each scene of 300 looks; with
    ``drifts`` the light changes in five steps.
    """

    words: str
    active: int = 0
    tail: float = 1.0
    switches: bool = False
    drifts: bool = False


FOUR, LONG_TAIL, SCENES, DRIFT = 'four active', 'long tail 100:1', 'scenes', 'drift'
KINDS: Mapping[str, StreamKind] = {
    FOUR: StreamKind('four classes are met, equally often', active=4),
    'ten active': StreamKind('ten classes are met, equally often', active=10),
    'long tail 10:1': StreamKind('all classes, the first ten times as often as the last', tail=10),
    LONG_TAIL: StreamKind('all classes, the first 100 times as often as the last', tail=100),
    SCENES: StreamKind('four classes, other ones after each 300 looks', active=4, switches=True),
    DRIFT: StreamKind('four classes in light that becomes dim and warm', active=4, drifts=True),
}


class Stream(NamedTuple):
    """T looks: ``rows`` (T,) of the crops, ``tracks`` (T,), and how far light drifted (0..4)."""

    rows: NDArray[np.intp]
    tracks: NDArray[np.int64]
    levels: NDArray[np.int64]


def make_stream(crops: LabelledCrops, kind: StreamKind, looks: int, seed: int) -> Stream:
    """Draw a stream; the same one for the same seed."""
    # Other words of a kind draw another stream.
    random = np.random.default_rng((seed, len(kind.words), looks))
    known = _classes(crops)
    objects = {
        label: [np.flatnonzero(crops.objects == one) for one in np.unique(crops.objects[of])]
        for label, of in ((label, crops.labels == label) for label in known.tolist())
    }
    rows, tracks = [], []
    track = 0
    for length, shares in _parts(kind, len(known), looks, random):
        drawn = 0
        while drawn < length:
            members = objects[int(known[random.choice(len(known), p=shares)])]
            seen = _visit(members[random.integers(len(members))], random)[: length - drawn]
            rows.append(seen)
            tracks.append(np.full(len(seen), track))
            drawn, track = drawn + len(seen), track + 1
    levels = drift_levels(looks) if kind.drifts else np.zeros(looks, np.int64)
    return Stream(np.concatenate(rows), np.concatenate(tracks), levels)


def drift_levels(looks: int) -> NDArray[np.int64]:
    """Return how far (T,) the light has drifted at each look, 0..4."""
    levels: NDArray[np.int64] = np.arange(looks) * DRIFT_LEVELS // looks
    return levels


def _classes(crops: LabelledCrops) -> NDArray[np.int64]:
    """Return the classes that come."""
    labels, counts = np.unique(crops.labels, return_counts=True)
    enough: NDArray[np.int64] = labels[counts >= FEWEST_CROPS]
    return enough if len(enough) > 1 else labels


def _parts(
    kind: StreamKind, classes: int, looks: int, random: np.random.Generator
) -> Iterator[tuple[int, FloatArray]]:
    """Yield how many looks come, and the shares (J,) of the classes in them."""
    if not kind.active:
        places = random.permutation(classes) / max(classes - 1, 1)
        shares = kind.tail**-places
        yield looks, shares / shares.sum()
        return
    active = min(kind.active, classes)
    last: NDArray[np.int64] = np.zeros(0, np.int64)
    for begin in range(0, looks, SCENE if kind.switches else looks):
        others = np.setdiff1d(np.arange(classes), last)
        chosen = random.choice(others if len(others) >= active else classes, active, replace=False)
        shares = np.zeros(classes)
        shares[chosen] = 1.0 / active
        last = chosen
        yield min(SCENE, looks - begin) if kind.switches else looks, shares


def _visit(members: NDArray[np.intp], random: np.random.Generator) -> NDArray[np.intp]:
    """Return the crops of an object, from any of them on."""
    return np.roll(members, -int(random.integers(len(members))))[:VISIT]
