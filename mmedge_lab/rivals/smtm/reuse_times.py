"""Processor time of the camera's encoder in each row of the reuse bench, measured side by side.

The encoders that fly, or a rival around them, take the same pictures as they were recorded, JPEG
decoding included. A flight is cut into blocks of a second, and each block goes through all rows
before the next, in another order each time, so that a machine that gets slower meets all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import cv2

from mmedge_lab.judging.bench import Sums
from mmedge_lab.rivals.smtm.reuse_rivals import ReuseRow, RivalEncoder
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Unit
from mmedge_ros.encoding.bundle.model_bundle import model_levels, open_detector
from mmedge_ros.encoding.unit_encoder import CameraEncoder, UnitEncoder
from mmedge_ros.geometry.camera_turn import CameraView, view_of
from mmedge_ros.geometry.ego_motion import EgoReport
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing.rate_control import RateControl

# The first block is not counted: an encoder learns the camera's rate, and caches are cold.
_NOT_COUNTED = 1
ProcessorClock = Callable[[], float]


@dataclass
class TimedRow:
    """An encoder at work as a row says, and what it has needed so far."""

    row: ReuseRow
    encoder: UnitEncoder
    rate_control: RateControl
    processor: float = 0.0
    encoded: int = 0
    clock: ProcessorClock = field(default=time.process_time, repr=False)

    def take(self, block: Iterable[Unit], *, counted: bool) -> None:
        """Encode, follow or leave out each picture of a block."""
        part = self.row.configuration.of(CAMERA)
        for unit in block:
            if not self.rate_control.admits(unit.stamp_ns, part.rate):
                continue
            begun = self.clock()
            features = self.encoder.encode(unit, part, 0)
            if counted:
                self.processor += self.clock() - begun
                self.encoded += not features.followed


def timed_flight(folder: Path, bundle: Path, rows: Sequence[ReuseRow]) -> dict[str, Sums]:
    """Measure all rows on a flight: ``processor`` and ``timed`` (s), encoded ``pictures``.

    :raises ReplayError: if the flight cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    cv2.setNumThreads(1)
    levels, default = model_levels(bundle)
    # Rows share the networks: the memory of eleven would not fit into any cache.
    open_level = cache(lambda level, device: open_detector(bundle, None, level, device))
    rig = SensorRig()

    def view_at(stamp_ns: int) -> CameraView | None:
        return view_of(rig.geometry_at(stamp_ns))

    with Recording(folder) as recording:
        _set_up(rig, recording)
        timed = []
        for row in rows:
            encoder: UnitEncoder = CameraEncoder(open_level, levels, default)
            if row.is_rival:
                encoder = RivalEncoder(encoder, row.between, view_at)
            timed.append(TimedRow(row, encoder, RateControl(recording.periods_ns.get(CAMERA))))
        timed[0].encoder.warm_up()
        counted = take_in_turns(timed, _blocks(recording, rig))
        seconds = counted * recording.periods_ns[CAMERA] / NS_PER_S
    return {
        of.row.name: {
            'processor': of.processor,
            'timed': seconds,
            'pictures': float(of.encoded),
        }
        for of in timed
    }


def take_in_turns(timed: Sequence[TimedRow], blocks: Iterable[Sequence[Unit]]) -> int:
    """Give every block to every row, each time beginning with another one.

    :return: how many pictures the camera took in the blocks that are counted
    """
    counted = 0
    for number, block in enumerate(blocks):
        first = number % len(timed)
        for of in (*timed[first:], *timed[:first]):
            of.take(block, counted=number >= _NOT_COUNTED)
        counted += len(block) * (number >= _NOT_COUNTED)
    return counted


def _set_up(rig: SensorRig, recording: Recording) -> None:
    rig.add_transforms(recording.transforms)
    if recording.camera is not None:
        rig.set_camera(recording.camera)


def _blocks(recording: Recording, rig: SensorRig) -> Iterator[list[Unit]]:
    """Yield the pictures of each whole second; the rig knows the odometry up to its end."""
    block: list[Unit] = []
    for event in recording.events():
        if isinstance(event, EgoReport):
            rig.add_ego_state(event.state, event.frame_id, event.base_frame)
        elif event.modality == CAMERA:
            if block and event.stamp_ns - block[0].stamp_ns >= NS_PER_S:
                yield block
                block = []
            rig.set_frames({CAMERA: event.frame_id})
            block.append(event)
