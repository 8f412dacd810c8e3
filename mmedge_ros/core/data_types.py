"""Records that flow through the pipeline.

SI units, REP-103 axes (x forward, y left, z up; optical frames x right, y down, z forward).
Instants are integer nanoseconds on the ROS clock and end in ``_ns``; durations are float
seconds. A *unit* is one camera frame or one radar scan; a *decision* belongs to the end of
a sensing window. Records that hold arrays compare by identity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CAMERA = 'camera'
RADAR = 'radar'
NS_PER_S = 1_000_000_000

FloatArray = NDArray[np.float64]

RETURN_FIELDS = ('x', 'y', 'z', 'velocity', 'snr')


class StageTiming(NamedTuple):
    """One stage of a latency trail; instants in nanoseconds on the ROS clock."""

    stage: str
    begin_ns: int
    end_ns: int


Trail = tuple[StageTiming, ...]


def extend_trail(trail: Trail, stage: str, end_ns: int) -> Trail:
    """Append a stage that begins where the trail ends, so that a trail has no gaps.

    A clock that stepped back between two processes yields an empty stage, not a negative one.
    """
    begin_ns = trail[-1].end_ns
    return (*trail, StageTiming(stage, begin_ns, max(begin_ns, end_ns)))


class Box(NamedTuple):
    """Axis-aligned box in pixels of the original picture; x to the right, y down."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.y1 - self.y0


@dataclass(frozen=True, slots=True)
class Detection:
    """An object seen in one picture.

    ``distance`` from the camera and its standard deviation in m; NaN where only the box is
    known. ``item`` is the number of the object that the encoder remembers, unique within its
    run, 0 where it remembers none: a followed picture says by it which detection of the encoded
    one it moved. Detections are equal if box, score and label are: NaN is not even equal to
    itself.
    """

    box: Box
    score: float
    label: str
    distance: float = field(default=float('nan'), compare=False)
    distance_deviation: float = field(default=float('nan'), compare=False)
    item: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """The smallest sensing segment of one modality, not yet encoded.

    ``stamp_ns`` is the measurement time, ``available_ns`` when the last byte was received.
    ``payload`` is the sensor message itself (ROS or rosbags; only its fields are used), so
    that nothing is copied before it is needed.
    """

    modality: str
    sequence: int
    stamp_ns: int
    available_ns: int
    frame_id: str
    payload: Any
    trail: Trail


class UnitOutcome(IntEnum):
    """What became of a unit at its encoder; the values are those of UnitReceipt.msg."""

    RECEIVED = 0
    SKIPPED = 1
    DROPPED = 2
    FAILED = 3
    THINNED = 4


class DetectionKey(NamedTuple):
    """Names a detection: the camera unit by its sequence, and its place in that."""

    unit_sequence: int
    place: int


class UnitKey(NamedTuple):
    """Identifies a unit across nodes; the stamp keeps keys apart after an encoder restarts."""

    modality: str
    sequence: int
    stamp_ns: int


@dataclass(frozen=True, slots=True)
class UnitReceipt:
    """Informs fusion that a unit has arrived at its encoder, or why it will not come."""

    modality: str
    sequence: int
    stamp_ns: int
    available_ns: int
    outcome: UnitOutcome = UnitOutcome.RECEIVED
    reason: str = ''

    @property
    def key(self) -> UnitKey:
        return UnitKey(self.modality, self.sequence, self.stamp_ns)


def _no_returns() -> NDArray[np.float32]:
    return np.zeros((0, len(RETURN_FIELDS)), np.float32)


class Appearance(NamedTuple):
    """How a picture looks as a whole; NaN where it is not known.

    ``brightness`` (mean) and ``contrast`` (standard deviation) in 0..1 of full white;
    ``sharpness`` is the change from pixel to pixel as a share of the contrast.
    """

    brightness: float = math.nan
    contrast: float = math.nan
    sharpness: float = math.nan


_UNKNOWN = Appearance()


@dataclass(frozen=True, slots=True, eq=False)
class UnitFeatures:
    """An encoded unit.

    ``returns`` is (N, 5) float32: x, y, z (m), velocity (m/s, positive = receding), snr (dB,
    NaN where the sensor gives none), in the sensor's frame ``frame_id``. ``embedding`` is
    (E,) float32 and ``grid`` (C, H, W) float16; both may be empty. ``image_size`` is
    (width, height) of the original picture, (0, 0) for other modalities; ``appearance`` is how
    that picture looks. ``followed``: the picture was not encoded; its detections are those of
    the last encoded one, moved with the image, and it has neither grid nor embedding.
    """

    modality: str
    sequence: int
    stamp_ns: int
    available_ns: int
    frame_id: str
    trail: Trail
    rate: float = 0.0
    level: str = ''
    configuration_id: int = 0
    detections: tuple[Detection, ...] = ()
    returns: NDArray[np.float32] = field(default_factory=_no_returns)
    embedding: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    grid: NDArray[np.float16] = field(default_factory=lambda: np.zeros((0, 0, 0), np.float16))
    image_size: tuple[int, int] = (0, 0)
    appearance: Appearance = _UNKNOWN
    followed: bool = False

    @property
    def key(self) -> UnitKey:
        return UnitKey(self.modality, self.sequence, self.stamp_ns)

    @property
    def stage(self) -> str:
        """Name of the stage of the trail in which an encoder made this of the unit."""
        return 'follow' if self.followed else 'encode'

    def without_grid(self, **changes: Any) -> UnitFeatures:
        """Return the unit with other fields, and without its grid, which is large."""
        return replace(self, grid=np.zeros((0, 0, 0), np.float16), **changes)


# With more, objects are followed for longer than image motion is good for (0.35 s at 30 Hz).
MOST_REUSE = 10

# The rate of a modality that rests until the next configuration, and for so long (s) at most: a
# configuration that no other one follows must not blind. From then on it is sensed at this rate.
STANDBY = -1.0
LONGEST_STANDBY = 15.0
RATE_AFTER_STANDBY = 10.0


@dataclass(frozen=True, slots=True)
class ModalityConfiguration:
    """How one modality is sensed and encoded.

    ``rate`` in Hz is an upper bound, 0 = native, `STANDBY` = no unit is taken.

    With ``reuse`` n about every n-th unit is encoded, and in the others what was seen is
    followed; 1 or 0: every unit is encoded.
    """

    modality: str
    rate: float = 0.0
    level: str = ''
    device: str = 'cpu'
    reuse: int = 1

    def words(self) -> str:
        """Name rate, level and reuse, as ``camera 30 Hz medium 1 of 2 encoded``."""
        rate = f'{self.rate:g} Hz' if self.rate else 'native rate'
        if self.rate == STANDBY:
            return f'{self.modality} standing by'
        reuse = f'1 of {self.reuse} encoded' if self.reuse > 1 else ''
        return ' '.join(filter(None, (self.modality, rate, self.level, reuse)))


@dataclass(frozen=True, slots=True)
class Configuration:
    """A rate and a level for each modality, valid for units stamped from ``effective_from_ns``.

    Latencies in seconds; ``predicted_accuracy`` in 0..1 and NaN where nothing was predicted.
    """

    id: int = 0
    effective_from_ns: int = 0
    modalities: tuple[ModalityConfiguration, ...] = ()
    latency_limit: float = float('nan')
    predicted_latency: float = float('nan')
    predicted_accuracy: float = float('nan')
    reason: str = ''

    def of(self, modality: str) -> ModalityConfiguration:
        """Return the part for ``modality``; native rate and default level if not listed."""
        for part in self.modalities:
            if part.modality == modality:
                return part
        return ModalityConfiguration(modality)

    def over(self, set_up: ModalityConfiguration) -> Configuration:
        """Return it within how a modality was set up: its rate and the least reuse stay bounds.

        The level that was set up holds where none is named, and all of it where the modality is
        not listed.
        """
        part = next((p for p in self.modalities if p.modality == set_up.modality), set_up)
        rates = [rate for rate in (part.rate, set_up.rate) if rate > 0.0]
        merged = replace(
            part,
            rate=part.rate if part.rate == STANDBY else min(rates, default=0.0),
            level=part.level or set_up.level,
            reuse=max(part.reuse, set_up.reuse),
        )
        others = tuple(p for p in self.modalities if p.modality != set_up.modality)
        return replace(self, modalities=(*others, merged))


@dataclass(frozen=True, slots=True)
class SkipDecision:
    """A lease: units of ``modality`` stamped before ``skip_until_ns`` need not be sensed."""

    modality: str
    issued_ns: int
    skip_until_ns: int
    window_end_ns: int
    fraction: float = 0.0
    confidence: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A detection placed in space by decision fusion.

    ``position`` (3,) m with ``covariance`` (3, 3) in the tracking frame. ``radial_velocity``
    (m/s, positive = receding, NaN unknown) with ``radial_variance`` is seen from ``origin``
    (3,). ``box`` is None for a radar-only cluster. ``range_from`` says what set the range:
    ``radar``, ``height`` (of the box), ``ground`` (below its foot), ``learned`` (by feature
    fusion) or ``cluster``.

    ``lasting`` says which part (3, 3) of the covariance is an error that the next readings of
    a modality repeat, such as that of a person taller than others. ``otherwise`` is what holds
    if the returns inside the box come from another object; ``odds`` is the logarithm of the odds
    that they are not. ``height_deviation`` is how far (relative) ranges of a source differ from
    one body to another where the box or a network gave the range, else NaN. ``repeated``: the box
    is that of an earlier detection, moved with the image, and has its error. ``detection`` names
    the encoder's detection whose box it is; None for clusters.
    """

    stamp_ns: int
    label: str
    score: float
    box: Box | None
    position: FloatArray
    covariance: FloatArray
    radial_velocity: float
    radial_variance: float
    origin: FloatArray
    seen_by: tuple[str, ...]
    range_from: str
    depth: float = float('nan')
    lasting: Mapping[str, FloatArray] = field(default_factory=dict)
    otherwise: Measurement | None = None
    odds: float = 0.0
    height_deviation: float = float('nan')
    repeated: bool = False
    detection: DetectionKey | None = None

    @property
    def cue(self) -> Cue:
        """What set the range."""
        return _CUES.get(self.range_from, Cue.SIZE)


class Cue(IntFlag):
    """What says how far away somebody is; the values are those of Track.msg."""

    NONE = 0
    GROUND = 1
    RADAR = 2
    SIZE = 4


_CUES = {'ground': Cue.GROUND, 'radar': Cue.RADAR, 'cluster': Cue.RADAR}


class LabelSource(IntEnum):
    """Where the label of a track is from; the values are those of Track.msg."""

    DETECTOR = 0
    FULL = 1
    MEMORY = 2
    REUSED = 3


@dataclass(frozen=True, slots=True)
class TrackLabel:
    """What a recogniser says of a track.

    ``confidence`` in 0..1. ``attributes`` are like ``bottom red`` or ``backpack``. ``exit`` counts
    the stages of the classifier that ran at the last look. ``is_novel``: nothing of this label was
    there for a while.
    """

    track_id: int
    label: str
    confidence: float
    attributes: tuple[str, ...] = ()
    source: LabelSource = LabelSource.FULL
    exit: int = 0
    is_novel: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Novelty:
    """Something came into view that had not been there for a while.

    ``position`` (3,) m in ``frame_id`` at ``stamp_ns``; ``reason`` says in words what is new.
    """

    stamp_ns: int
    frame_id: str
    track_id: int
    label: str
    confidence: float
    position: FloatArray
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """A confirmed track at the state time of its decision.

    ``position`` (3,) m and ``velocity`` (3,) m/s in the decision's frame, ``covariance``
    (6, 6) of both. ``box`` is None while the camera does not see the object. ``age`` is the
    time since the last measurement update, in seconds. ``detection`` names the newest one in it.
    ``recognised`` is what a recogniser says of it; its label is then that of the track. ``cues``
    gave the newest range. ``projected`` is where its body is in the picture if the radar alone
    sees it.
    """

    id: int
    label: str
    score: float
    box: Box | None
    position: FloatArray
    velocity: FloatArray
    covariance: FloatArray
    seen_by: tuple[str, ...]
    age: float
    box_velocity: tuple[float, float] = (0.0, 0.0)
    detection: DetectionKey | None = None
    recognised: TrackLabel | None = None
    cues: Cue = Cue.NONE
    projected: Box | None = None

    def box_at(self, elapsed: float) -> Box | None:
        """Return the box moved with its own velocity by ``elapsed`` seconds."""
        if self.box is None:
            return None
        right, down = (speed * elapsed for speed in self.box_velocity)
        x0, y0, x1, y1 = self.box
        return Box(x0 + right, y0 + down, x1 + right, y1 + down)


class ResultKind(IntEnum):
    """What a result is; the values are those of TrackArray.msg."""

    DECISION = 0
    UPDATE = 1


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The result that belongs to one window end, or an update between two of them.

    An update says what is known of the tracks as a picture completes; ``window_end_ns`` is the
    end of the window that is open then. It is no decision: it has no latency and no deadline.

    ``state_ns`` is the instant its tracks refer to (never later than the window end);
    ``newest_ns`` maps each modality to the stamp of the newest unit used so far. ``late`` are
    modalities with units still in work at the deadline, ``lost`` those that sent nothing
    during the window. ``trail`` is the path of the critical unit from acquisition to
    publication and is empty when the window brought no new unit.
    """

    window_end_ns: int
    state_ns: int
    frame_id: str
    tracks: tuple[Track, ...]
    newest_ns: dict[str, int]
    configuration_ids: tuple[int, ...] = (0,)
    skipped: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    trail: Trail = ()
    published_ns: int = 0
    kind: ResultKind = ResultKind.DECISION

    def published(self, now_ns: int) -> Decision:
        """Return the decision with its publication time and the trail closed at it.

        The last stage is the work on the decision itself: fusion and tracking. Stages end with
        the publication even where a clock is coarse (simulated time) and theirs was ahead.
        """
        trail = tuple(
            StageTiming(t.stage, min(t.begin_ns, now_ns), min(t.end_ns, now_ns))
            for t in self.trail
        )
        trail = extend_trail(trail, 'fusion', now_ns) if trail else ()
        return replace(self, published_ns=now_ns, trail=trail)

    @property
    def latency(self) -> float:
        """Publication minus window end, in seconds; negative when decided early.

        NaN of an update, which answers to no window's end.
        """
        if self.kind is ResultKind.UPDATE:
            return math.nan
        return (self.published_ns - self.window_end_ns) / NS_PER_S

    @property
    def ages(self) -> dict[str, float]:
        """Publication minus the stamp of the newest unit used, in seconds, per modality."""
        return {m: (self.published_ns - s) / NS_PER_S for m, s in self.newest_ns.items()}
