"""What a gate costs on this machine: features and network, of a scene with people in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from mmedge_lab.judging.stopwatch import Stopwatch
from mmedge_ros.data_types import CAMERA, NS_PER_S, Box, Detection, Measurement, UnitFeatures
from mmedge_ros.skipping.feature_extractor import GateFeatureExtractor as _Extractor
from mmedge_ros.skipping.gate import Gate
from mmedge_ros.skipping.gate_features import OpenWindow
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker

_PERIOD_NS = NS_PER_S // 30
_WINDOW_UNITS = 15
_PEOPLE, _WARM_UP, _PICTURES = 5, 15, 165
_PARTS = ('whole', 'asking', 'taking in', 'question', 'network')


class _Moment(NamedTuple):
    """A picture, the tracks after it, and the window that is open then."""

    features: UnitFeatures
    state: TrackerState
    window: OpenWindow


_Watches: TypeAlias = Mapping[str, Stopwatch]
_Timed: TypeAlias = Callable[[_Extractor, Gate, _Moment, _Watches], None]


def gate_times(gate: Gate) -> dict[str, dict[str, float]]:
    """Time a picture that is taken in, the features extracted after it, and the network.

    Five people are followed at 30 Hz, every picture changes the tracks, so that nothing can be
    remembered from the picture before.

    :return: quantiles in microseconds: of ``whole``, and of its parts ``taking in`` (which each
        unit costs, evaluated or not) and ``asking``, that is ``question`` and ``network``
    """
    return {**_timed(gate, _whole), **_timed(gate, _evaluated), **_timed(gate, _in_parts)}


def _timed(gate: Gate, timed: _Timed) -> dict[str, dict[str, float]]:
    extractor = _Extractor()
    watches = {name: Stopwatch() for name in _PARTS}
    for number, (features, state) in enumerate(_pictures()):
        now_ns = features.available_ns
        left_ns = (_WINDOW_UNITS - 1 - number % _WINDOW_UNITS) * _PERIOD_NS
        window = OpenWindow(now_ns + left_ns, now_ns, CAMERA, 8, _WINDOW_UNITS, 'medium')
        if number == _WARM_UP:
            watches = {name: Stopwatch() for name in watches}
        timed(extractor, gate, _Moment(features, state, window), watches)
    return {name: watch.microseconds() for name, watch in watches.items() if watch.is_used}


def _whole(
    extractor: _Extractor, gate: Gate, now: _Moment, watches: Mapping[str, Stopwatch]
) -> None:
    # By itself: stopwatches within it would be a tenth of it.
    watches['whole'].start()
    extractor.add(now.features, now.state)
    gate.confidence(extractor.features(now.window, now.state))
    watches['whole'].stop()


def _evaluated(
    extractor: _Extractor, gate: Gate, now: _Moment, watches: Mapping[str, Stopwatch]
) -> None:
    extractor.add(now.features, now.state)
    watches['asking'].start()
    gate.confidence(extractor.features(now.window, now.state))
    watches['asking'].stop()


def _in_parts(
    extractor: _Extractor, gate: Gate, now: _Moment, watches: Mapping[str, Stopwatch]
) -> None:
    watches['taking in'].start()
    extractor.add(now.features, now.state)
    watches['taking in'].stop()
    watches['question'].start()
    features = extractor.features(now.window, now.state)
    watches['question'].stop()
    watches['network'].start()
    gate.confidence(features)
    watches['network'].stop()


def _pictures() -> Iterator[tuple[UnitFeatures, TrackerState]]:
    """Yield pictures of people who walk side by side, and the tracks after each."""
    random = np.random.default_rng(0)
    tracker, state = Tracker(), TrackerState()
    for number in range(_PICTURES):
        stamp_ns = NS_PER_S + number * _PERIOD_NS
        seen = [_measured(stamp_ns, person, random) for person in range(_PEOPLE)]
        state = tracker.step(state, stamp_ns, seen, True)
        detections = tuple(Detection(m.box, m.score, m.label) for m in seen if m.box is not None)
        yield (
            UnitFeatures(
                CAMERA,
                number,
                stamp_ns,
                stamp_ns,
                '',
                (),
                detections=detections,
                image_size=(640, 480),
            ),
            state,
        )


def _measured(stamp_ns: int, person: int, random: np.random.Generator) -> Measurement:
    aside = 0.8 * stamp_ns / NS_PER_S
    place = np.array([8.0, 2.0 * (_PEOPLE // 2 - person) + aside, 0.0])
    left, top = 320.0 - 60.0 * place[1], 180.0
    corners = np.array([left, top, left + 40.0, top + 110.0]) + random.normal(0.0, 1.0, 4)
    # Plain numbers, as detectors and messages give them.
    box = Box(*corners.tolist())
    return Measurement(
        stamp_ns,
        'person',
        0.8,
        box,
        place,
        0.04 * np.eye(3),
        math.nan,
        0.1,
        np.zeros(3),
        (CAMERA,),
        'height',
    )
