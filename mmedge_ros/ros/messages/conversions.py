"""Between the core's records and messages; bulk data is never copied element by element."""

from __future__ import annotations

import array
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from std_msgs.msg import Header

from mmedge_ros import data_types as core
from mmedge_ros import msg
from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.encoding.bricks import BrickState, BrickStatus
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.power.power_policy import PowerState

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


def _floats(values: np.ndarray) -> array.array:
    return array.array('f', np.ascontiguousarray(values, np.float32).tobytes())


def to_trail(trail: core.Trail) -> list[msg.StageTiming]:
    return [
        msg.StageTiming(stage=t.stage, begin=to_time(t.begin_ns), end=to_time(t.end_ns))
        for t in trail
    ]


def from_trail(trail: list[msg.StageTiming]) -> core.Trail:
    return tuple(core.StageTiming(t.stage, from_time(t.begin), from_time(t.end)) for t in trail)


def to_receipt(receipt: core.UnitReceipt, frame_id: str = '') -> msg.UnitReceipt:
    return msg.UnitReceipt(
        header=header(receipt.stamp_ns, frame_id),
        modality=receipt.modality,
        sequence=receipt.sequence,
        available=to_time(receipt.available_ns),
        outcome=int(receipt.outcome),
        reason=receipt.reason,
    )


def from_receipt(message: msg.UnitReceipt) -> core.UnitReceipt:
    """:raises ValueError: for an outcome this version does not know."""
    return core.UnitReceipt(
        message.modality,
        message.sequence,
        from_time(message.header.stamp),
        from_time(message.available),
        core.UnitOutcome(message.outcome),
        message.reason,
    )


def to_features(features: core.UnitFeatures) -> msg.UnitFeatures:
    result = msg.UnitFeatures(
        header=header(features.stamp_ns, features.frame_id),
        modality=features.modality,
        sequence=features.sequence,
        rate=float(features.rate),
        level=features.level,
        configuration_id=features.configuration_id,
        grid_shape=np.array(features.grid.shape, np.uint16),
        detections=[
            msg.Detection(
                x0=float(d.box.x0),
                y0=float(d.box.y0),
                x1=float(d.box.x1),
                y1=float(d.box.y1),
                score=float(d.score),
                label=d.label,
                item=d.item,
            )
            for d in features.detections
        ],
        image_size=np.array(features.image_size, np.uint16),
        followed=features.followed,
        available=to_time(features.available_ns),
        trail=to_trail(features.trail),
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
    width, height = (int(n) for n in message.image_size)
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
    return core.UnitFeatures(
        message.modality,
        message.sequence,
        stamp_ns,
        available_ns,
        message.header.frame_id,
        from_trail(message.trail),
        message.rate,
        message.level,
        message.configuration_id,
        tuple(
            core.Detection(core.Box(d.x0, d.y0, d.x1, d.y1), d.score, d.label, item=d.item)
            for d in message.detections
        ),
        returns,
        np.frombuffer(message.embedding, np.float32),
        np.frombuffer(message.grid, np.dtype('<f2')).reshape(shape),
        (width, height),
        appearance_of_message(message),
        message.followed,
    )


def to_configuration(configuration: core.Configuration, now_ns: int) -> msg.Configuration:
    return msg.Configuration(
        header=header(now_ns),
        id=configuration.id,
        effective_from=to_time(configuration.effective_from_ns),
        modalities=[
            msg.ModalityConfiguration(
                modality=m.modality,
                rate=float(m.rate),
                level=m.level,
                device=m.device,
                reuse=m.reuse,
            )
            for m in configuration.modalities
        ],
        latency_limit=float(configuration.latency_limit),
        predicted_latency=float(configuration.predicted_latency),
        predicted_accuracy=float(configuration.predicted_accuracy),
        reason=configuration.reason,
    )


def from_configuration(message: msg.Configuration, device: str = 'cpu') -> core.Configuration:
    """:param device: where modalities that name none are encoded."""
    return core.Configuration(
        message.id,
        from_time(message.effective_from),
        tuple(
            core.ModalityConfiguration(
                m.modality, m.rate, m.level, m.device or device, max(m.reuse, 1)
            )
            for m in message.modalities
        ),
        message.latency_limit,
        message.predicted_latency,
        message.predicted_accuracy,
        message.reason,
    )


def to_skip_decision(skip: core.SkipDecision) -> msg.SkipDecision:
    return msg.SkipDecision(
        header=header(skip.issued_ns),
        modality=skip.modality,
        skip_until=to_time(skip.skip_until_ns),
        fraction=float(skip.fraction),
        confidence=float(skip.confidence),
        window_end=to_time(skip.window_end_ns),
    )


def from_skip_decision(message: msg.SkipDecision) -> core.SkipDecision:
    return core.SkipDecision(
        message.modality,
        from_time(message.header.stamp),
        from_time(message.skip_until),
        from_time(message.window_end),
        message.fraction,
        message.confidence,
    )


# Variances of what is not known: an angle that may be any, rad^2, and a turn of half a circle per
# second either way, (rad/s)^2. Zero would say that it is known for sure.
_ANY_ANGLE, _ANY_TURN = math.pi**2 / 3, math.pi**2


def to_track(track: core.Track) -> msg.Track:
    result = msg.Track(
        id=track.id,
        label=track.label,
        score=float(track.score),
        box_valid=track.box is not None,
        box=np.array(track.box or (0.0,) * 4, np.float32),
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
    position = result.pose.pose.position
    position.x, position.y, position.z = (float(v) for v in track.position)
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
    box = core.Box(*(float(v) for v in message.box)) if message.box_valid else None
    if not all(np.isfinite(v).all() for v in (position, velocity, covariance, box or ())):
        raise ValueError(f'track {message.id}: a state that is not finite')
    return core.Track(
        message.id,
        message.label,
        message.score,
        box,
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
    return msg.TrackArray(
        kind=int(decision.kind),
        header=header(decision.state_ns, decision.frame_id),
        window_end=to_time(decision.window_end_ns),
        published=to_time(decision.published_ns),
        configuration_ids=list(decision.configuration_ids),
        latency=float(decision.latency),
        age=age,
        modalities=list(decision.newest_ns),
        newest=[to_time(ns) for ns in decision.newest_ns.values()],
        ages=[float(age) for age in decision.ages.values()],
        skipped=list(decision.skipped),
        lost=list(decision.lost),
        late=list(decision.late),
        degraded=list(decision.degraded),
        tracks=[to_track(t) for t in decision.tracks],
        trail=to_trail(decision.trail),
    )


def from_track_array(message: msg.TrackArray) -> core.Decision:
    """:raises ValueError: when lists differ in length, or a track or the kind is impossible."""
    same_length(message, 'modalities', 'newest')
    return core.Decision(
        from_time(message.window_end),
        from_time(message.header.stamp),
        message.header.frame_id,
        tuple(from_track(t) for t in message.tracks),
        dict(zip(message.modalities, map(from_time, message.newest), strict=True)),
        tuple(message.configuration_ids),
        tuple(message.skipped),
        tuple(message.lost),
        tuple(message.late),
        tuple(message.degraded),
        from_trail(message.trail),
        from_time(message.published),
        core.ResultKind(message.kind),
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
    return msg.TrackLabels(
        header=header(stamp_ns),
        labels=[
            msg.TrackLabel(
                track_id=one.track_id,
                label=one.label,
                confidence=float(one.confidence),
                attributes=list(one.attributes),
                source=int(one.source),
                exit=one.exit,
                novel=one.is_novel,
            )
            for one in labels
        ],
    )


def from_track_labels(message: msg.TrackLabels) -> list[core.TrackLabel]:
    """:raises ValueError: for a source this version does not know, or no confidence of 0..1."""
    labels = [
        core.TrackLabel(
            one.track_id,
            one.label,
            one.confidence,
            tuple(one.attributes),
            core.LabelSource(one.source),
            one.exit,
            one.novel,
        )
        for one in message.labels
    ]
    for one in labels:
        if not 0.0 <= one.confidence <= 1.0:
            raise ValueError(f'track {one.track_id}: confidence {one.confidence:g} of its label')
    return labels


def to_power_state(state: PowerState, now_ns: int) -> msg.PowerState:
    """:param now_ns: when it was found."""
    return msg.PowerState(
        header=header(now_ns, ''),
        state=int(state.mode),
        charge=float(state.charge),
        alpha=float(state.alpha),
        reason=state.reason,
    )


def to_brick_plan(node: str, bricks: Iterable[BrickStatus], now_ns: int) -> msg.BrickPlan:
    """:param now_ns: when they were looked at."""
    statuses = [
        msg.BrickStatus(
            name=brick.name,
            device=brick.device,
            precision=brick.precision,
            state=int(brick.state),
            load_time=float(brick.load_time),
            run_time=float(brick.run_time),
            memory=brick.memory,
            problem=brick.problem,
        )
        for brick in bricks
    ]
    return msg.BrickPlan(header=header(now_ns, ''), node=node, bricks=statuses)


def from_brick_plan(message: msg.BrickPlan) -> list[BrickStatus]:
    """Return what bricks do; those in a state that there is not are left out."""
    states = set(BrickState)
    return [
        BrickStatus(
            brick.name,
            brick.device,
            brick.precision,
            BrickState(brick.state),
            float(brick.load_time),
            float(brick.run_time),
            int(brick.memory),
            brick.problem,
        )
        for brick in message.bricks
        if brick.state in states
    ]


def to_novelty(novelty: core.Novelty) -> msg.Novelty:
    x, y, z = (float(value) for value in novelty.position)
    return msg.Novelty(
        header=header(novelty.stamp_ns, novelty.frame_id),
        track_id=novelty.track_id,
        label=novelty.label,
        confidence=float(novelty.confidence),
        position=Point(x=x, y=y, z=z),
        reason=novelty.reason,
    )


def from_novelty(message: msg.Novelty) -> core.Novelty:
    """:raises ValueError: for a position that is not finite."""
    point = message.position
    position = np.array([point.x, point.y, point.z])
    if not np.isfinite(position).all():
        raise ValueError(f'novelty of track {message.track_id}: a position that is not finite')
    return core.Novelty(
        from_time(message.header.stamp),
        message.header.frame_id,
        message.track_id,
        message.label,
        message.confidence,
        position,
        message.reason,
    )
