"""Object memory beside its rivals on simulated flights: the rows of the bench, replayed.

Every row is replayed in virtual time with the same service times, the radar as it is. A picture
that a rival fills in without looking at it takes no time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.encoded_flight import (
    EncodedFlight,
    StoredEncoder,
    replay_encoded,
)
from mmedge_lab.rivals.smtm.reuse_rivals import CHEAPER, EVERY, ROWS, ReuseRow, RivalEncoder
from mmedge_ros.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.encoding.bundle.model_bundle import model_levels
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.geometry.camera_turn import CameraView, view_of
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.records.device_profile import PROBABILITIES, DeviceProfile
from mmedge_ros.records.run_record import RunRecord

# What decides the result of a row, beside the package's pipeline.


def known_rows(names: Iterable[str], bundle: Path) -> tuple[ReuseRow, ...]:
    """Return the rows of these names, all for none, and always that of every picture.

    :raises EvaluationError: for an unknown one, or a bundle without a level of one
    """
    wanted = set(names)
    unknown = wanted - set(ROWS)
    if unknown:
        raise EvaluationError(f'no row {min(unknown)!r}; there are {", ".join(ROWS)}')
    rows = tuple(
        row for name, row in ROWS.items() if not wanted or name in wanted or name == EVERY
    )
    levels, _ = model_levels(bundle)
    for level in (level for row in rows for level in row.levels):
        if level not in levels:
            raise EvaluationError(f'{bundle} has no camera level {level!r}; name another bundle')
    return rows


def row_configuration(row: ReuseRow) -> Configuration:
    """Return what the camera is configured to in a row; the radar as it is."""
    camera = ModalityConfiguration(CAMERA, row.rate, row.level, reuse=row.reuse)
    return Configuration(1, 0, (camera, ModalityConfiguration(RADAR)))


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
    return replay_encoded(flight, pipeline, row_configuration(row), profile, encoders=encoders)
