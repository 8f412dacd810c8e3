"""Ways to fly beside each other on simulated flights: rows that are replayed, judged and kept.

Every row is replayed in virtual time with the same service times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from mmedge_lab.judging.bundle_cases import FUSION
from mmedge_lab.judging.bundle_under_test import (
    BundleUnderTest,
    flight_digest,
    software_digest,
)
from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_lab.judging.flight_cases import CachedTruth, encoded_with_truth
from mmedge_lab.judging.flight_sums import Figure, SummedFlights, Sums
from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.records.device_profile import DeviceProfile
from mmedge_ros.records.plain_values import plain_values
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.accuracy import Accuracy, accuracy_of
from mmedge_ros.report.report_files import kept_content, write_files

FIGURES: Mapping[str, Figure] = {
    'streaming_mean_iou': Figure('stream_overlap', 'streamed'),
    'mean_iou': Figure('overlap', 'people'),
    'precision': Figure('hits', 'boxes'),
    'recall': Figure('found', 'people'),
    'idf1': Figure('same', 'tracked'),
    'mota': Figure('errors', 'true_boxes', 1.0, -1.0),
    'nees': Figure('nees', 'located'),
}
# Of the work on a flight; a guess that only the progress depends on.
_ENCODING_SHARE = 0.3
_DIGITS = 5


class Row(Protocol):
    """One way to fly; ``levels`` are those at which pictures are encoded."""

    @property
    def name(self) -> str: ...

    @property
    def levels(self) -> tuple[str, ...]: ...


RowKind = TypeVar('RowKind', bound=Row)


@dataclass(frozen=True)
class RowBench(Generic[RowKind]):
    """A bundle, the rows to judge, and the folder in which the sums of flights are kept.

    ``replay`` replays an encoded flight as a row says.
    """

    bundle: BundleUnderTest
    rows: tuple[RowKind, ...]
    folder: Path
    replay: Callable[[EncodedFlight, RowKind, PerceptionPipeline, DeviceProfile], RunRecord]

    def sums(
        self, flight: Path, on_progress: Callable[[float], None] | None = None
    ) -> dict[str, Sums]:
        """Return the sums of each row in a flight; what was judged before is kept.

        :param on_progress: called with the share done, 0..1
        :raises EvaluationError: if the flight has no truth or a result cannot be written
        :raises ReplayError: if the flight cannot be read
        :raises EncodingError: if the bundle cannot be used
        """
        path = self.folder / f'{flight.name}.json'
        code = software_digest()
        key = f'{self.bundle.digest} {code} {flight_digest(flight)}'
        known = _read(kept_content(path), key)
        missing = [row for row in self.rows if row.name not in known]
        if missing:
            known |= judged_flight(flight, self.bundle, missing, self.replay, on_progress)
            text = json.dumps({'key': key, 'rows': known})
            write_files(self.folder, {path.name: text.encode()})
        return {row.name: known[row.name] for row in self.rows}


def _read(content: bytes | None, key: str) -> dict[str, Sums]:
    try:
        kept = json.loads(content or b'{}')
        return dict(kept['rows']) if kept['key'] == key else {}
    except (ValueError, KeyError, TypeError):
        return {}


def judged_flight(
    folder: Path,
    bundle: BundleUnderTest,
    rows: Sequence[RowKind],
    replay: Callable[[EncodedFlight, RowKind, PerceptionPipeline, DeviceProfile], RunRecord],
    on_progress: Callable[[float], None] | None = None,
) -> dict[str, Sums]:
    """Encode a flight once per level, then replay and judge it in each row."""

    def report(share: float) -> None:
        if on_progress:
            on_progress(share)

    levels = {CAMERA: {level for row in rows for level in row.levels}, RADAR: {''}}
    with Recording(folder) as recording:
        flight = encoded_with_truth(
            recording,
            bundle.encoders(),
            levels,
            lambda share: report(_ENCODING_SHARE * share),
            with_greys=True,
        )
    assert flight.truth is not None  # `encoded_with_truth` requires it
    truth, networks = CachedTruth(flight.truth), bundle.networks()
    sums = {}
    for number, row in enumerate(rows, 1):
        pipeline = bundle.pipeline(FUSION, networks)
        record = replay(flight, row, pipeline, bundle.profile)
        accuracy = accuracy_of(record, truth, at_once=False)
        assert accuracy is not None  # the truth has scenes
        sums[row.name] = sums_of(accuracy, record)
        report(_ENCODING_SHARE + (1.0 - _ENCODING_SHARE) * number / len(rows))
    return sums


def sums_of(accuracy: Accuracy, record: RunRecord) -> Sums:
    """Sum up a run: each of `FIGURES` is a quotient of two of these sums.

    ``nees`` is that of position and velocity (4 degrees of freedom), of each track once a second.
    """
    states, stream, tracking = accuracy.states, accuracy.stream, accuracy.tracking
    wrong = tracking.false_positives + tracking.false_negatives + (tracking.id_switches or 0)
    nees = accuracy.independent_errors.nees
    nees = nees[np.isfinite(nees)]
    sums = {
        'stream_overlap': stream.overlaps.sum(),
        'streamed': len(stream.ids),
        'overlap': states.overlaps.sum(),
        'people': len(states.ids),
        'found': np.count_nonzero(states.met),
        'hits': accuracy.counts.true_positives,
        'boxes': accuracy.counts.true_positives + accuracy.counts.false_positives,
        'same': 2 * tracking.idtp,
        'tracked': tracking.true_boxes + tracking.result_boxes,
        'errors': wrong,
        'true_boxes': tracking.true_boxes,
        'nees': nees.sum(),
        'located': len(nees),
        'encoded': sum(u.modality == CAMERA and not u.followed for u in record.features),
        'followed': sum(u.modality == CAMERA and u.followed for u in record.features),
        'seconds': record.duration,
    }
    return {column: float(value) for column, value in sums.items()}


def accuracy_report(flights: SummedFlights, first: str) -> dict[str, Any]:
    """Return each row's figures, and their differences to those of the ``first`` row."""
    values: dict[str, Any] = plain_values(
        {
            name: {
                figure: {
                    **flights.estimate(name, figure)._asdict(),
                    'difference': flights.difference(name, first, figure)._asdict(),
                }
                for figure in flights.figures
            }
            for name in flights.subjects
        },
        _DIGITS,
    )
    return values
