"""Object memory beside its rivals on simulated flights: accuracy, and the camera's encoder's time.

Every row is replayed in virtual time with the same service times, the radar as it is. A picture
that a rival fills in without looking at it takes no time. Processor time is measured apart, on a
few of the flights, with the encoders that fly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums, few
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import EncodedFlight, StoredEncoder, replay_encoded
from mmedge_lab.judging.judged_flight import (
    FIGURES,
    FlightOpener,
    JudgedFlight,
    bundle_about,
    bundle_of,
)
from mmedge_lab.rivals.smtm.reuse_rivals import CHEAPER, EVERY, ROWS, ReuseRow, RivalEncoder
from mmedge_lab.rivals.smtm.reuse_times import timed_flight
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.core.device_profile import PROBABILITIES, DeviceProfile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.bundle.model_bundle import model_levels
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.geometry.camera_turn import CameraView, view_of
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline

_TIMES = "processor time of the camera's encoder"
_FIGURES = {
    **FIGURES,
    'processor': Figure('ms per second', 'processor', 'timed', 0, scale=1e3, relative=True),
    'encoded': Figure('encoded per second', 'pictures', 'timed', 1, relative=True),
}


@dataclass(frozen=True)
class _Opener:
    """Opens flights for replays; the names of those on which time is measured are ``timed``."""

    bundle: BundleUnderTest
    timed: tuple[str, ...]

    def __call__(self, subject: Subject, rows: Sequence[Row], on_share: OnShare) -> _ReuseFlight:
        opened = FlightOpener(self.bundle, with_greys=True)(subject, rows, on_share)
        assert subject.path is not None  # `FlightOpener` has opened it
        names = {row.name for row in rows} if subject.name in self.timed else ()
        return _ReuseFlight(
            opened, subject.path, tuple(ROWS[name] for name in ROWS if name in names)
        )


@dataclass(frozen=True)
class _ReuseFlight:
    opened: JudgedFlight
    folder: Path
    timed: tuple[ReuseRow, ...]

    @cached_property
    def times(self) -> Mapping[str, Sums]:
        """Measured side by side, so that a machine that gets slower meets all rows alike."""
        return timed_flight(self.folder, self.opened.bundle.folder, self.timed)


def bench(request: BenchRequest, *, profile: str = '', timed: int = 4) -> Bench:
    """Compare object memory with what else can be done with every second picture.

    :param profile: file of service times; nominal ones without it, every level alike
    :param timed: flights on which processor time is measured
    """
    bundle, subjects = bundle_of(request.detector, profile), request.flights()
    levels, _ = model_levels(bundle.folder)
    judged = [
        Row(row.name, partial(_judged, row), row.words, levels=row.levels) for row in ROWS.values()
    ]
    measured = [
        replace(row, judge=partial(_measured, row.name), group=_TIMES, levels=()) for row in judged
    ]
    rows = request.chosen([*judged, *(measured if timed else ())], (EVERY,))
    for level in (level for row in rows for level in row.levels):
        if level not in levels:
            raise EvaluationError(
                f'{bundle.folder} has no camera level {level!r}; name another bundle, or --rows'
            )
    folders = few([s.path for s in subjects if s.path], timed)
    return Bench(
        'Object memory beside its rivals',
        rows,
        _FIGURES,
        subjects,
        _Opener(bundle, tuple(folder.name for folder in folders)),
        references=(EVERY,),
        key=f'{bundle.digest} {timed}',
        about=bundle_about(bundle, subjects),
    )


def _judged(row: ReuseRow, of: _ReuseFlight) -> Sums:
    opened = of.opened
    return opened.sums(replay_row(opened.flight, row, opened.pipeline(), opened.bundle.profile))


def _measured(name: str, of: _ReuseFlight) -> Sums:
    return of.times[name] if of.timed else {}


def replay_row(
    flight: EncodedFlight, row: ReuseRow, pipeline: PerceptionPipeline, profile: DeviceProfile
) -> RunRecord:
    """Replay an encoded flight as a row says, in virtual time; return the record of the run."""

    def view_at(stamp_ns: int) -> CameraView | None:
        return view_of(pipeline.rig.geometry_at(stamp_ns))

    encoders: dict[str, UnitEncoder] = {}
    if row.is_rival:
        encoders[CAMERA] = RivalEncoder(StoredEncoder(flight, CAMERA), row.between, view_at)
        if row.between != CHEAPER:
            stages = {**profile.stages, f'{CAMERA}.follow': (0.0,) * len(PROBABILITIES)}
            profile = replace(profile, stages=stages)
    return replay_encoded(flight, pipeline, row.configuration, profile, encoders=encoders)
