"""Object memory beside its rivals on simulated flights: accuracy, and the camera's encoder's time.

Every row is replayed in virtual time with the same service times, the radar as it is. A picture
that a rival fills in without looking at it takes no time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mmedge_lab.judging.accuracy_sums import FIGURES
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Sums
from mmedge_lab.judging.encoded_flight import EncodedFlight, StoredEncoder, replay_encoded
from mmedge_lab.judging.judged_flight import FlightOpener, JudgedFlight, bundle_about, bundle_of
from mmedge_lab.judging.steered_replay import stage_seconds
from mmedge_lab.rivals.smtm.reuse_rivals import CHEAPER, EVERY, ROWS, ReuseRow, RivalEncoder
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.core.device_profile import PROBABILITIES, DeviceProfile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.bundle.model_bundle import model_levels
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.geometry.camera_turn import CameraView, view_of
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline

_FIGURES = {
    **FIGURES,
    'processor': Figure('encoder ms per s', 'busy', 'seconds', 0, scale=1e3, relative=True),
    'encoded': Figure('encoded per second', 'encoded', 'seconds', 1, relative=True),
}


def bench(request: BenchRequest, *, profile: str = '') -> Bench:
    """Compare object memory with what else can be done with every second picture.

    :param profile: file of service times; nominal ones without it, every level alike
    """
    bundle, subjects = bundle_of(request.detector, profile), request.flights()
    known, _ = model_levels(bundle.folder)
    there = [row for row in ROWS.values() if set(row.levels) <= set(known)]
    left_out = [
        f'no row {name!r}: the bundle lacks a level'
        for name, row in ROWS.items()
        if row not in there
    ]
    return Bench(
        'Object memory beside its rivals',
        tuple(Row(row.name, partial(_judged, row), row.words, levels=row.levels) for row in there),
        _FIGURES,
        subjects,
        FlightOpener(bundle, with_greys=True),
        references=(EVERY,),
        key=bundle.digest,
        about=bundle_about(bundle, subjects),
        notes=lambda _: left_out,
    )


def _judged(row: ReuseRow, opened: JudgedFlight) -> Sums:
    record = replay_row(opened.flight, row, opened.pipeline(), opened.bundle.profile)
    busy = sum(
        stage_seconds(unit.trail, 'follow' if unit.followed else 'encode')
        for unit in record.features
        if unit.modality == CAMERA
    )
    return {**opened.sums(record), 'busy': busy}


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
