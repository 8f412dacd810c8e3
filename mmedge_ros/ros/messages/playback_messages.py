"""The state of a bag player as a message."""

from __future__ import annotations

from mmedge_ros import msg
from mmedge_ros.records.run_record import UnitCounts
from mmedge_ros.replay.playback import PlaybackStatus
from mmedge_ros.ros.messages.conversions import from_time, header, same_length, to_time


def to_playback_state(status: PlaybackStatus, now_ns: int) -> msg.PlaybackState:
    return msg.PlaybackState(
        header=header(now_ns),
        bag=status.bag,
        offset=status.offset_ns,
        rate=float(status.rate),
        begin=to_time(status.begin_ns),
        end=to_time(status.end_ns),
        finished=status.finished,
        modalities=list(status.counts),
        captured=[c.captured for c in status.counts.values()],
        transferred=[c.transferred for c in status.counts.values()],
        skipped=[c.skipped for c in status.counts.values()],
    )


def from_playback_state(message: msg.PlaybackState) -> PlaybackStatus:
    """:raises ValueError: when the lists of counts differ in length."""
    same_length(message, 'modalities', 'captured', 'transferred', 'skipped')
    counts = {
        modality: UnitCounts(
            captured=captured,
            transferred=transferred,
            skipped=skipped,
            thinned=max(captured - transferred - skipped, 0),
        )
        for modality, captured, transferred, skipped in zip(
            message.modalities,
            message.captured,
            message.transferred,
            message.skipped,
            strict=True,
        )
    }
    return PlaybackStatus(
        message.bag,
        message.offset,
        message.rate,
        from_time(message.begin),
        from_time(message.end),
        message.finished,
        counts,
    )
