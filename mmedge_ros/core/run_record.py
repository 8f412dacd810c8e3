"""What a run leaves behind, the same for a live and an offline replay.

All instants are in the bag's own time: a live recorder subtracts the player's offset.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mmedge_ros import __version__, git_revision
from mmedge_ros.core.data_types import Configuration, Decision, Novelty, UnitFeatures

if TYPE_CHECKING:
    from mmedge_ros.geometry.ego_motion import EgoMotion
    from mmedge_ros.geometry.projection import CameraModel
    from mmedge_ros.geometry.transforms import Transform
    from mmedge_ros.monitoring.system_state import SystemState
    from mmedge_ros.replay.ground_truth import GroundTruth


@dataclass
class UnitCounts:
    """Units of one modality, counted apart by what became of them.

    captured: measured by the sensor; transferred: handed over by the driver; received: seen
    by the encoder; followed: not encoded, its objects are those of an earlier unit, moved;
    thinned: above the configured rate; failed: could not be decoded; late: still in work when the
    first window they belong to had to close; lost: transferred but never received, or received
    and then neither encoded, followed nor reported.
    """

    captured: int = 0
    transferred: int = 0
    received: int = 0
    encoded: int = 0
    skipped: int = 0
    dropped: int = 0
    late: int = 0
    lost: int = 0
    failed: int = 0
    thinned: int = 0
    followed: int = 0


@dataclass
class RunRecord:
    """Everything the report is made from.

    ``deadline``, ``window`` and ``stride`` in seconds. ``windows`` counts the ends on the grid
    that the recording covers. ``warmup`` decisions at the start are left out of the latency
    statistics (a live graph's first messages travel slowly). ``camera_stamps_ns`` holds the
    stamp of every camera message of the recording, in order, so that a frame index in a box
    file can be looked up. ``updates`` were published between ``decisions``; of all figures only
    streaming accuracy counts them. ``features`` are the encoded units in order of arrival,
    without grids.
    ``camera`` and ``camera_pose`` (camera frame -> frame of the body) are None without
    calibration. ``ego`` is the way of the body through ``frame_id`` by odometry; without any,
    tracks live in the frame of the body. ``truth`` is None where the recording has none.
    ``configurations`` are those that were published, ``states`` the states of the system by
    instant; both only of a live graph that has an optimiser and a monitor. ``picture_scale`` is
    how much larger the recording's own pictures are than those that boxes here refer to.
    ``novelties`` are what came into view after a while, ``recognition`` says how tracks got their
    labels; both are empty without a recogniser.
    """

    bag: str
    mode: str
    deadline: float
    window: float
    stride: float
    windows: int = 0
    dropped: int = 0
    warmup: int = 0
    frame_id: str = ''
    decisions: list[Decision] = field(default_factory=list)
    updates: list[Decision] = field(default_factory=list)
    features: list[UnitFeatures] = field(default_factory=list)
    units: dict[str, UnitCounts] = field(default_factory=dict)
    camera_stamps_ns: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    camera: CameraModel | None = None
    camera_pose: Transform | None = None
    radar_pose: Transform | None = None
    ego: EgoMotion | None = None
    truth: GroundTruth | None = None
    configurations: list[Configuration] = field(default_factory=list)
    states: list[tuple[int, SystemState]] = field(default_factory=list)
    resources: dict[str, float] = field(default_factory=dict)
    software: dict[str, str] = field(default_factory=dict)
    profile: str = ''
    duration: float = 0.0
    picture_scale: float = 1.0
    wall_time: float = 0.0
    novelties: list[Novelty] = field(default_factory=list)
    recognition: dict[str, object] = field(default_factory=dict)


def software_identity(bundle: Path | str) -> dict[str, str]:
    """Return version, git revision ('' outside a checkout) and the model's name."""
    return {'version': __version__, 'git': git_revision(), 'bundle': Path(bundle).name}


_MOST_REASONS = 50
_OTHER_REASONS = 'other reasons'


def count_failure(failures: Counter[str], reason: str) -> bool:
    """Count a reason and say whether it is a new one.

    Only the first reasons are counted apart, so that memory stays bounded.
    """
    if reason not in failures and len(failures) >= _MOST_REASONS:
        reason = _OTHER_REASONS
    failures[reason] += 1
    return failures[reason] == 1


def unexpected(error: Exception) -> str:
    """Put an unforeseen error into words."""
    return f'unexpected {type(error).__name__}: {error}'
