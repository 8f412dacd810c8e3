"""Object memory beside its rivals on simulated flights: accuracy, and the camera's encoder's time.

Every row is replayed in virtual time with the same service times, the radar as it is. A picture
that a rival fills in without looking at it takes no time. Processor time is measured apart, on a
few of the flights, with the encoders that fly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mmedge_lab.judging.accuracy_sums import FIGURES
from mmedge_lab.judging.bench import (
    Bench,
    BenchRequest,
    Figure,
    Row,
    Subject,
    Sums,
    few,
)
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import EncodedFlight, StoredEncoder, replay_encoded
from mmedge_lab.judging.judged_flight import (
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


def _opened(
    bundle: BundleUnderTest,
    timed: Sequence[Path],
    subject: Subject,
    rows: Sequence[Row],
    on_share: OnShare,
) -> JudgedFlight | Mapping[str, Sums]:
    """Encode a flight for replays; or measure times, if it is one of those ``timed``."""
    names = {row.name for row in rows if row.group == _TIMES}
    if not names:
        return FlightOpener(bundle, with_greys=True)(subject, rows, on_share)
    if subject.flight not in timed:
        return {}
    # Side by side, so that a machine that gets slower meets all rows alike.
    side_by_side = [ROWS[name] for name in ROWS if name in names]
    return timed_flight(subject.flight, bundle.folder, side_by_side)


def bench(request: BenchRequest, *, profile: str = '', timed: int = 4) -> Bench:
    """Compare object memory with what else can be done with every second picture.

    :param profile: file of service times; nominal ones without it, every level alike
    :param timed: flights on which processor time is measured
    """
    bundle, subjects = bundle_of(request.detector, profile), request.flights()
    known, _ = model_levels(bundle.folder)
    there = [row for row in ROWS.values() if set(row.levels) <= set(known)]
    rows = [Row(row.name, partial(_judged, row), row.words, levels=row.levels) for row in there]
    rows += [
        Row(row.name, partial(_measured, row.name), row.words, _TIMES, kept=False)
        for row in (there if timed else ())
    ]
    left_out = [
        f'no row {name!r}: the bundle lacks a level'
        for name, row in ROWS.items()
        if row not in there
    ]
    return Bench(
        'Object memory beside its rivals',
        tuple(rows),
        _FIGURES,
        subjects,
        partial(_opened, bundle, few([s.flight for s in subjects], timed)),
        references=(EVERY,),
        key=bundle.digest,
        about=bundle_about(bundle, subjects),
        notes=lambda _: left_out,
    )


def _judged(row: ReuseRow, opened: JudgedFlight) -> Sums:
    return opened.sums(replay_row(opened.flight, row, opened.pipeline(), opened.bundle.profile))


def _measured(name: str, times: Mapping[str, Sums]) -> Sums:
    return times.get(name, {})


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
