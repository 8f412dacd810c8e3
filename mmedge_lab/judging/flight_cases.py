"""Flights that can be judged: encoded, with a truth that is interpolated once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.encoded_flight import EncodedFlight, encode_flight, load_flight
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay.ground_truth import GroundTruth, TrueFrame
from mmedge_ros.replay.recording import Recording


class CachedTruth(GroundTruth):
    """A truth that interpolates an instant once, however many runs are judged by it."""

    def __init__(self, truth: GroundTruth) -> None:
        super().__init__(truth.scenes, truth.problems)
        self._remembered: dict[int, TrueFrame | None] = {}
        self._instants: dict[int, list[int]] = {}

    def frame_at(self, stamp_ns: int) -> TrueFrame | None:
        if stamp_ns not in self._remembered:
            self._remembered[stamp_ns] = super().frame_at(stamp_ns)
        return self._remembered[stamp_ns]

    def instants(self, step_ns: int) -> Iterator[int]:
        if step_ns not in self._instants:
            self._instants[step_ns] = list(super().instants(step_ns))
        return iter(self._instants[step_ns])


def encoded_with_truth(
    recording: Recording,
    encoders: Mapping[str, UnitEncoder],
    levels: Mapping[str, Collection[str]],
    on_progress: Callable[[float], None],
    *,
    with_greys: bool = False,
) -> EncodedFlight:
    """Read a flight that can be judged and encode its units with the ``levels`` of a modality.

    What of it could not be read is in the problems of its record.

    :param on_progress: called with the share done, 0..1
    :param with_greys: as of `encode_flight`
    :raises EvaluationError: if it lacks a sensor or the truth
    :raises ReplayError: if it cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    flight = load_flight(recording, PipelineParameters())
    if flight.truth is None or not flight.truth.scenes:
        why = 'none that can be used' if flight.truth else 'none'
        raise EvaluationError(
            f'{recording.bag.path}: ground truth is needed, and this recording has '
            f'{why}; use flights made by `mmedge simulate`'
        )
    missing = [m for m in (CAMERA, RADAR) if m not in recording.modalities]
    if missing:
        raise EvaluationError(
            f'{recording.bag.path}: the recording has no {missing[0]}; use flights with camera '
            'and radar, as `mmedge simulate` writes them'
        )
    encode_flight(flight, recording, encoders, levels, on_progress, with_greys=with_greys)
    flight.record.problems += [
        *recording.bag.problems,
        *recording.problems,
        *flight.truth.problems,
    ]
    return flight
