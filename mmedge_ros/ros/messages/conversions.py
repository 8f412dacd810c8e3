"""Between the core's records and messages; bulk data is never copied element by element.

Fields that say the same are listed in tables. What is left is what messages have otherwise.
"""

from __future__ import annotations

import array
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from std_msgs.msg import Header

from mmedge_ros import msg
from mmedge_ros.adaptation.latency_budget import LatencyDemand
from mmedge_ros.adaptation.power_policy import PowerMode, PowerState
from mmedge_ros.core import data_types as core
from mmedge_ros.core.data_types import CAMERA, NS_PER_S
from mmedge_ros.core.run_record import UnitCounts
from mmedge_ros.encoding.bricks import BrickState, BrickStatus
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.replay.playback import PlaybackStatus

R = TypeVar('R')

# What the package's own encoders stay far below, or are set up to.
_MOST_DETECTIONS, _MOST_RETURNS = 300, 10_000


def to_time(ns: int) -> Time:
    """Make a time message; instants before 1970 become zero."""
    seconds, nanoseconds = divmod(max(int(ns), 0), NS_PER_S)
    return Time(sec=seconds, nanosec=nanoseconds)


def from_time(time: Time) -> int:
    """Return nanoseconds."""
    return int(time.sec) * NS_PER_S + int(time.nanosec)


def header(stamp_ns: int, frame_id: str = '') -> Header:
    return Header(stamp=to_time(stamp_ns), frame_id=frame_id)


class Field(NamedTuple):
    """A value of a record: its name there, and how it goes into a message and back."""

    name: str
    to: Callable[[Any], Any]
    back: Callable[[Any], Any]


class Table(Generic[R]):
    """Fields of a message and of a record that say the same.

    :param same: names of those that are the same in both
    :param times: names of instants; the record has them in ns, and ``_ns`` after the name
    :param others: those that are something else, by their name in the message
    """

    def __init__(
        self,
        message: type,
        record: type[R],
        same: str = '',
        *,
        reals: str = '',
        lists: str = '',
        times: str = '',
        **others: Field,
    ) -> None:
        self._message, self._record = message, record
        self._fields = dict(others)
        for name in same.split():
            self._fields[name] = Field(name, _as_it_is, _as_it_is)
        for name in reals.split():
            self._fields[name] = Field(name, float, _as_it_is)
        for name in lists.split():
            self._fields[name] = Field(name, list, tuple)
        for name in times.split():
            self._fields[name] = Field(f'{name}_ns', to_time, from_time)

    def to(self, record: Any, **more: Any) -> Any:
        """Make a message.

        :param more: fields that are not in the table
        """
        fields = self._fields.items()
        return self._message(**{n: f.to(getattr(record, f.name)) for n, f in fields}, **more)

    def back(self, message: Any, **more: Any) -> R:
        """Make a record.

        :param more: fields that are not in the table
        :raises ValueError: for a number that is no member of its enumeration
        """
        fields = self._fields.items()
        return self._record(**{f.name: f.back(getattr(message, n)) for n, f in fields}, **more)


def _as_it_is(value: Any) -> Any:
    return value


def _floats(values: np.ndarray) -> array.array:
    return array.array('f', np.ascontiguousarray(values, np.float32).tobytes())


def to_point(position: Sequence[float] | np.ndarray) -> Point:
    x, y, z = (float(value) for value in position)
    return Point(x=x, y=y, z=z)


_STAGE = Table(msg.StageTiming, core.StageTiming, 'stage', times='begin end')
_TRAIL = Field(
    'trail',
    lambda trail: [_STAGE.to(stage) for stage in trail],
    lambda trail: tuple(map(_STAGE.back, trail)),
)
_RECEIPT = Table(
    msg.UnitReceipt,
    core.UnitReceipt,
    'modality sequence reason',
    times='available',
    outcome=Field('outcome', int, core.UnitOutcome),
)
_UNIT = Table(
    msg.UnitFeatures,
    core.UnitFeatures,
    'modality sequence level configuration_id followed',
    reals='rate',
    times='available',
    trail=_TRAIL,
    image_size=Field(
        'image_size',
        lambda size: np.array(size, np.uint16),
        lambda size: tuple(int(side) for side in size),
    ),
)
_MODALITY = Table(
    msg.ModalityConfiguration,
    core.ModalityConfiguration,
    'modality level',
    reals='rate',
    # 0 is one that nobody has set.
    reuse=Field('reuse', int, lambda reuse: max(reuse, 1)),
)
_CONFIGURATION = Table(
    msg.Configuration,
    core.Configuration,
    'id reason',
    reals='latency_limit predicted_latency predicted_accuracy',
    times='effective_from',
)
_LEASE = Table(
    msg.SkipDecision,
    core.SkipDecision,
    'modality',
    reals='fraction confidence',
    times='skip_until window_end',
)
_LABEL = Table(
    msg.TrackLabel,
    core.TrackLabel,
    'track_id label exit',
    reals='confidence',
    lists='attributes',
    source=Field('source', int, core.LabelSource),
    novel=Field('is_novel', bool, bool),
)
_DECISION = Table(
    msg.TrackArray,
    core.Decision,
    lists='configuration_ids skipped lost late degraded',
    times='window_end published',
    trail=_TRAIL,
    kind=Field('kind', int, core.ResultKind),
)
_BRICK = Table(
    msg.BrickStatus,
    BrickStatus,
    'name device precision memory problem',
    reals='load_time run_time',
    state=Field('state', int, BrickState),
)
_POWER = Table(
    msg.PowerState,
    PowerState,
    'reason',
    reals='charge alpha',
    state=Field('mode', int, PowerMode),
)
# Unknown throttling becomes false, as the field has no third value.
_STATE = Table(
    msg.SystemState,
    SystemState,
    reals='voltage current charge gpu memory temperature gpu_clock',
    power=Field('shown_power', float, float),
    cpu=Field('cpu', lambda loads: array.array('f', loads), tuple),
    cpu_clock=Field('cpu_clock', lambda clocks: array.array('f', clocks), tuple),
    throttled=Field('throttled', bool, bool),
)
_NOVELTY = Table(
    msg.Novelty,
    core.Novelty,
    'track_id label reason',
    reals='confidence',
    position=Field('position', to_point, lambda p: np.array([p.x, p.y, p.z])),
)
_PLAYBACK = Table(
    msg.PlaybackState,
    PlaybackStatus,
    'bag finished',
    reals='rate',
    times='begin end',
    offset=Field('offset_ns', int, int),
)


def from_trail(trail: list[msg.StageTiming]) -> core.Trail:
    return tuple(map(_STAGE.back, trail))


def to_receipt(receipt: core.UnitReceipt, frame_id: str = '') -> msg.UnitReceipt:
    return _RECEIPT.to(receipt, header=header(receipt.stamp_ns, frame_id))


def from_receipt(message: msg.UnitReceipt) -> core.UnitReceipt:
    """:raises ValueError: for an outcome this version does not know."""
    return _RECEIPT.back(message, stamp_ns=from_time(message.header.stamp))


def to_features(features: core.UnitFeatures) -> msg.UnitFeatures:
    result = _UNIT.to(
        features,
        header=header(features.stamp_ns, features.frame_id),
        grid_shape=np.array(features.grid.shape, np.uint16),
        detections=[
            msg.Detection(
                **dict(zip(('x0', 'y0', 'x1', 'y1'), map(float, d.box), strict=True)),
                score=float(d.score),
                label=d.label,
                item=d.item,
            )
            for d in features.detections
        ],
    )
    # Arrays are set on the message: its constructor would copy them element by element.
    result.embedding = _floats(features.embedding)
    result.returns = _floats(features.returns)
    result.grid = array.array('B', np.ascontiguousarray(features.grid, '<f2').tobytes())
    if features.modality == core.CAMERA:
        result.appearance = _floats(np.array(features.appearance))
    return result


def appearance_of_message(message: msg.UnitFeatures) -> core.Appearance:
    """Return how a picture looks; NaN where the message does not say, or says something else."""
    size = len(core.Appearance._fields)
    # Older recordings have more values, of parts of the picture.
    values = [float(value) for value in message.appearance[:size]]
    is_known = len(values) == size and all(map(math.isfinite, values))
    return core.Appearance(*values) if is_known else core.Appearance()


def from_features(message: msg.UnitFeatures) -> core.UnitFeatures:
    """:raises ValueError: for arrays that do not fit together and times that cannot be true."""
    unit = f'{message.modality} unit {message.sequence}'
    stamp_ns, available_ns = from_time(message.header.stamp), from_time(message.available)
    if not plausible_stamp(stamp_ns, available_ns):
        raise ValueError(f'{unit}: stamp {stamp_ns} ns, but available at {available_ns} ns')
    if not message.trail:
        raise ValueError(f'{unit}: no trail')
    for words, many, most in (
        ('detections', len(message.detections), _MOST_DETECTIONS),
        ('numbers of returns', len(message.returns), len(core.RETURN_FIELDS) * _MOST_RETURNS),
    ):
        if many > most:
            raise ValueError(f'{unit}: {many} {words}, at most {most} can be handled in time')
    shape = tuple(int(n) for n in message.grid_shape)
    if len(message.grid) != 2 * math.prod(shape):
        raise ValueError(f'{unit}: {len(message.grid)} bytes are no grid of {shape} float16')
    fields = len(core.RETURN_FIELDS)
    if len(message.returns) % fields:
        raise ValueError(f'{unit}: {len(message.returns)} numbers are no returns of {fields}')
    returns = np.frombuffer(message.returns, np.float32).reshape(-1, fields)
    boxes = np.array([(d.x0, d.y0, d.x1, d.y1, d.score) for d in message.detections])
    # NaN stands for an unknown velocity or signal strength.
    if not np.isfinite(returns[:, :3]).all() or np.isinf(returns).any():
        raise ValueError(f'{unit}: a return that is not finite')
    if not np.isfinite(boxes).all():
        raise ValueError(f'{unit}: a detection that is not finite')
    return _UNIT.back(
        message,
        stamp_ns=stamp_ns,
        frame_id=message.header.frame_id,
        detections=tuple(
            core.Detection(core.Box(d.x0, d.y0, d.x1, d.y1), d.score, d.label, item=d.item)
            for d in message.detections
        ),
        returns=returns,
        embedding=np.frombuffer(message.embedding, np.float32),
        grid=np.frombuffer(message.grid, np.dtype('<f2')).reshape(shape),
        appearance=appearance_of_message(message),
    )


def to_configuration(configuration: core.Configuration, now_ns: int) -> msg.Configuration:
    parts = [_MODALITY.to(part, device=part.device) for part in configuration.modalities]
    return _CONFIGURATION.to(configuration, header=header(now_ns), modalities=parts)


def from_configuration(message: msg.Configuration, device: str = 'cpu') -> core.Configuration:
    """:param device: where modalities that name none are encoded."""
    parts = tuple(_MODALITY.back(m, device=m.device or device) for m in message.modalities)
    return _CONFIGURATION.back(message, modalities=parts)


def to_skip_decision(skip: core.SkipDecision) -> msg.SkipDecision:
    return _LEASE.to(skip, header=header(skip.issued_ns))


def from_skip_decision(message: msg.SkipDecision) -> core.SkipDecision:
    return _LEASE.back(message, issued_ns=from_time(message.header.stamp))


# Variances of what is not known: an angle that may be any, rad^2, and a turn of half a circle per
# second either way, (rad/s)^2. Zero would say that it is known for sure.
_ANY_ANGLE, _ANY_TURN = math.pi**2 / 3, math.pi**2


def to_track(track: core.Track) -> msg.Track:
    result = msg.Track(
        id=track.id,
        label=track.label,
        score=float(track.score),
        box_valid=track.box is not None,
        box=np.array(track.box or track.projected or (0.0,) * 4, np.float32),
        projected=track.projected is not None,
        cues=int(track.cues),
        box_velocity=np.array(track.box_velocity, np.float32),
        seen_by=list(track.seen_by),
        age=float(track.age),
        label_confidence=float('nan'),
        detection_valid=track.detection is not None,
    )
    if track.detection is not None:
        result.unit_sequence = track.detection.unit_sequence
        result.detection_index = track.detection.place
    if track.recognised is not None:
        known = track.recognised
        result.label_source, result.exit = int(known.source), known.exit
        result.label_confidence, result.novel = float(known.confidence), known.is_novel
        result.attributes = list(known.attributes)
    result.pose.pose.position = to_point(track.position)
    heading = math.atan2(track.velocity[1], track.velocity[0])
    orientation = result.pose.pose.orientation
    orientation.z, orientation.w = math.sin(heading / 2), math.cos(heading / 2)
    linear = result.twist.twist.linear
    linear.x, linear.y, linear.z = (float(v) for v in track.velocity)
    # The covariance between position and velocity has no place in the standard messages.
    result.pose.covariance = _covariance_36(track.covariance[:3, :3], _ANY_ANGLE)
    result.twist.covariance = _covariance_36(track.covariance[3:, 3:], _ANY_TURN)
    return result


def _covariance_36(block: np.ndarray, rotation: float) -> np.ndarray:
    covariance = rotation * np.eye(6)
    covariance[:3, :3] = block
    return covariance.ravel()


def from_track(message: msg.Track) -> core.Track:
    """:raises ValueError: for numbers that are not finite."""
    point, linear = message.pose.pose.position, message.twist.twist.linear
    position = np.array([point.x, point.y, point.z])
    velocity = np.array([linear.x, linear.y, linear.z])
    covariance = np.zeros((6, 6))
    covariance[:3, :3] = np.reshape(message.pose.covariance, (6, 6))[:3, :3]
    covariance[3:, 3:] = np.reshape(message.twist.covariance, (6, 6))[:3, :3]
    box = None
    if message.box_valid or message.projected:
        box = core.Box(*(float(v) for v in message.box))
    if not all(np.isfinite(v).all() for v in (position, velocity, covariance, box or ())):
        raise ValueError(f'track {message.id}: a state that is not finite')
    return core.Track(
        message.id,
        message.label,
        message.score,
        box if message.box_valid else None,
        position,
        velocity,
        covariance,
        tuple(message.seen_by),
        message.age,
        (float(message.box_velocity[0]), float(message.box_velocity[1])),
        core.DetectionKey(message.unit_sequence, message.detection_index)
        if message.detection_valid
        else None,
        _recognised(message),
        core.Cue(message.cues),
        box if message.projected else None,
    )


def _recognised(message: msg.Track) -> core.TrackLabel | None:
    """:raises ValueError: for a source this version does not know."""
    source = core.LabelSource(message.label_source)
    if source is core.LabelSource.DETECTOR:
        return None
    return core.TrackLabel(
        message.id,
        message.label,
        message.label_confidence,
        tuple(message.attributes),
        source,
        message.exit,
        message.novel,
    )


def to_track_array(decision: core.Decision) -> msg.TrackArray:
    """Make the message of a published decision or update."""
    age = float('nan')
    if decision.trail:
        age = (decision.published_ns - decision.trail[0].begin_ns) / NS_PER_S
    return _DECISION.to(
        decision,
        header=header(decision.state_ns, decision.frame_id),
        latency=float(decision.latency),
        age=age,
        modalities=list(decision.newest_ns),
        newest=[to_time(ns) for ns in decision.newest_ns.values()],
        ages=[float(age) for age in decision.ages.values()],
        tracks=[to_track(t) for t in decision.tracks],
    )


def from_track_array(message: msg.TrackArray) -> core.Decision:
    """:raises ValueError: when lists differ in length, or a track or the kind is impossible."""
    same_length(message, 'modalities', 'newest')
    return _DECISION.back(
        message,
        state_ns=from_time(message.header.stamp),
        frame_id=message.header.frame_id,
        tracks=tuple(from_track(t) for t in message.tracks),
        newest_ns=dict(zip(message.modalities, map(from_time, message.newest), strict=True)),
    )


def is_update(message: msg.TrackArray) -> bool:
    """Tell whether a message is an update, without taking it apart."""
    return bool(message.kind == message.UPDATE)


def same_length(message: Any, *names: str) -> None:
    """:raises ValueError: when these lists of a message differ in length."""
    lengths = {name: len(getattr(message, name)) for name in names}
    if len(set(lengths.values())) > 1:
        text = ', '.join(f'{count} {name}' for name, count in lengths.items())
        raise ValueError(f'{type(message).__name__} lists {text}')


def to_track_labels(labels: Sequence[core.TrackLabel], stamp_ns: int) -> msg.TrackLabels:
    return msg.TrackLabels(header=header(stamp_ns), labels=[_LABEL.to(one) for one in labels])


def from_track_labels(message: msg.TrackLabels) -> list[core.TrackLabel]:
    """:raises ValueError: for a source this version does not know, or no confidence of 0..1."""
    labels = [_LABEL.back(one) for one in message.labels]
    for one in labels:
        if not 0.0 <= one.confidence <= 1.0:
            raise ValueError(f'track {one.track_id}: confidence {one.confidence:g} of its label')
    return labels


def to_power_state(state: PowerState, now_ns: int) -> msg.PowerState:
    """:param now_ns: when it was found."""
    return _POWER.to(state, header=header(now_ns))


def to_system_state(state: SystemState, stamp_ns: int) -> msg.SystemState:
    return _STATE.to(state, header=header(stamp_ns))


def to_brick_plan(node: str, bricks: Iterable[BrickStatus], now_ns: int) -> msg.BrickPlan:
    """:param now_ns: when they were looked at."""
    statuses = [_BRICK.to(brick) for brick in bricks]
    return msg.BrickPlan(header=header(now_ns), node=node, bricks=statuses)


def from_brick_plan(message: msg.BrickPlan) -> list[BrickStatus]:
    """Return what bricks do; those in a state that there is not are left out."""
    states = set(BrickState)
    return [_BRICK.back(brick) for brick in message.bricks if brick.state in states]


def to_novelty(novelty: core.Novelty) -> msg.Novelty:
    return _NOVELTY.to(novelty, header=header(novelty.stamp_ns, novelty.frame_id))


def from_novelty(message: msg.Novelty) -> core.Novelty:
    """:raises ValueError: for a position that is not finite."""
    top = message.header
    novelty = _NOVELTY.back(message, stamp_ns=from_time(top.stamp), frame_id=top.frame_id)
    if not np.isfinite(novelty.position).all():
        raise ValueError(f'novelty of track {message.track_id}: a position that is not finite')
    return novelty


def to_playback_state(status: PlaybackStatus, now_ns: int) -> msg.PlaybackState:
    counts = status.counts.values()
    return _PLAYBACK.to(
        status,
        header=header(now_ns),
        modalities=list(status.counts),
        captured=[c.captured for c in counts],
        transferred=[c.transferred for c in counts],
        skipped=[c.skipped for c in counts],
    )


def from_playback_state(message: msg.PlaybackState) -> PlaybackStatus:
    """:raises ValueError: when the lists of counts differ in length."""
    same_length(message, 'modalities', 'captured', 'transferred', 'skipped')
    columns = zip(message.captured, message.transferred, message.skipped, strict=True)
    counts = {
        modality: UnitCounts(
            captured=captured,
            transferred=transferred,
            skipped=skipped,
            thinned=max(captured - transferred - skipped, 0),
        )
        for modality, (captured, transferred, skipped) in zip(
            message.modalities, columns, strict=True
        )
    }
    return _PLAYBACK.back(message, counts=counts)


def stage_seconds(message: msg.UnitFeatures, name: str) -> float:
    """Return how long a stage of a unit took by its trail; NaN where unknown."""
    for stage in reversed(message.trail):
        if stage.stage == name:
            return (from_time(stage.end) - from_time(stage.begin)) / NS_PER_S
    return math.nan


def seen_tracks(message: msg.TrackArray) -> list[tuple[int, bool]]:
    """Return the ids of tracks, and whether the camera has seen each lately."""
    return [(track.id, track.box_valid or CAMERA in track.seen_by) for track in message.tracks]


def demand_from_message(message: msg.LatencyDemand, now_ns: int) -> LatencyDemand:
    """Return what a consumer announces; its lease counts from now."""
    return LatencyDemand(
        message.source,
        float(message.decode_time),
        float(message.total_limit),
        (from_time(message.valid_until) - now_ns) / NS_PER_S,
    )


def seconds_until(instant: Time, now_ns: int) -> float:
    """Return how far ahead an instant is, never negative."""
    return max(from_time(instant) - now_ns, 0) / NS_PER_S
