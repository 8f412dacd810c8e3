"""Makes the memory of a recorded flight: it is replayed once for its tracks, and read once more.

The second reading decodes only pictures that show what is to be kept. All labels of the detector
are tracked, people and others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import (
    CAMERA,
    NS_PER_S,
    Box,
    FloatArray,
    Track,
    Unit,
    UnitFeatures,
)
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.crops import cut
from mmedge_ros.encoding.detector import DetectorParameters, Image
from mmedge_ros.encoding.unit_encoder import appearance_of
from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.memory_encoder import MemoryEncoder
from mmedge_ros.flight_memory.memory_store import Displaced, MemoryWriter, memory_folder
from mmedge_ros.flight_memory.moment import (
    UNKNOWN_POSE,
    UNKNOWN_SPOT,
    DronePose,
    MemoryItem,
    Spot,
    ViewKind,
    phase_of,
)
from mmedge_ros.flight_memory.store_file import FILE_NAME
from mmedge_ros.flight_memory.thumbnail import key_frame_thumbnail, object_thumbnail
from mmedge_ros.flight_memory.view_choice import (
    KeyFrames,
    TrackViews,
    ViewQuality,
    scene_vector,
    visible_share,
)
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.replay.offline_session import OfflineOptions, replay_detector, replay_offline
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image

# Views of a track, and looks at the scene, are this far apart at least: what is nearer in time
# shows the same.
_APART_NS = NS_PER_S // 5
# Smaller objects (px) show nothing that can be told in words.
LEAST_HEIGHT = 14.0
# Of the time: replaying takes most of it.
_REPLAYING = 0.8
_BATCH = 50

OnShare = Callable[[float, str], None]


@dataclass(frozen=True)
class BuiltMemory:
    """What was kept of a flight: ``items`` views of ``tracks`` tracks and ``key_frames``.

    ``problems`` are sentences about what the recording lacks.
    """

    folder: Path
    items: int
    tracks: int
    key_frames: int
    problems: tuple[str, ...]


class _Seen(NamedTuple):
    """A track as a decision had it, and where it is in a picture."""

    track: Track
    box: Box


def build_memory(
    recording: str, detector: str = '', on_share: OnShare = lambda _share, _words: None
) -> BuiltMemory:
    """Make the memory of a recording, in the place of one that is there.

    :param detector: bundle with a recogniser; '' takes what suits the recording
    :raises ReplayError: if the recording cannot be read
    :raises EncodingError: if the bundle cannot be used
    :raises FlightMemoryError: if the memory cannot be written
    """
    with Recording(recording) as opened:
        if CAMERA not in opened.modalities:
            raise FlightMemoryError(f'{recording} has no pictures, so nothing can be kept of it')
        model = replay_detector(opened, detector)
    encoder = MemoryEncoder(model)
    options = OfflineOptions(
        recording, str(model), detection=replace(DetectorParameters(), labels=())
    )
    folder = memory_folder(recording)
    is_there = (folder / FILE_NAME).exists()
    # Opened first: what cannot be written is said before the flight is replayed.
    with MemoryWriter(folder, None if is_there else encoder.header) as writer:
        record = replay_offline(
            options, lambda share, _: on_share(_REPLAYING * share, 'following what moves')
        )
        writer.forget_all()
    builder = _Builder(record, encoder)
    with MemoryWriter(folder, encoder.header) as writer:
        with Recording(recording) as opened:
            builder.read(opened, writer, on_share)
        writer.compact()
    return BuiltMemory(
        *(folder, builder.kept, len(builder.tracks), builder.key_frames),
        tuple(record.problems),
    )


class _Builder:
    """Chooses views of a replayed flight and hands them to a writer."""

    def __init__(self, record: RunRecord, encoder: MemoryEncoder) -> None:
        self.kept = self.key_frames = 0
        self.tracks: set[int] = set()
        self._record = record
        self._encoder = encoder
        self._views, self._frames = TrackViews(), KeyFrames()
        self._units = {f.sequence: f for f in record.features if f.modality == CAMERA}
        self._wanted = self._seen()
        self._looked_ns = -_APART_NS
        self._items: list[MemoryItem] = []
        self._displaced: list[Displaced] = []

    def read(self, recording: Recording, writer: MemoryWriter, on_share: OnShare) -> None:
        """Read all pictures that may show something, and write what is kept of them."""
        first_ns, last_ns = recording.arrivals_ns()
        for unit in recording.units():
            if unit.modality != CAMERA:
                continue
            share = (unit.available_ns - first_ns) / max(last_ns - first_ns, 1)
            on_share(_REPLAYING + (1.0 - _REPLAYING) * share, f'{self.kept} views')
            self._take(unit, max(unit.available_ns - first_ns, 0))
            if len(self._items) >= _BATCH:
                self._write(writer)
        self._write(writer)

    def _seen(self) -> dict[int, list[_Seen]]:
        """Return what is seen in which camera unit, by sequence; each track now and then."""
        seen: dict[int, list[_Seen]] = defaultdict(list)
        looked: dict[int, int] = {}
        for decision in self._record.decisions:
            for track in decision.tracks:
                key = track.detection
                unit = self._units.get(key.unit_sequence) if key is not None else None
                if unit is None or unit.followed or track.box is None:
                    continue
                if unit.stamp_ns - looked.get(track.id, -_APART_NS) < _APART_NS:
                    continue
                assert key is not None  # it led to the unit
                box = _box_in(unit, track, key.place)
                if box.height >= LEAST_HEIGHT:
                    looked[track.id] = unit.stamp_ns
                    seen[unit.sequence].append(_Seen(track, box))
        return seen

    def _take(self, unit: Unit, offset_ns: int) -> None:
        seen = self._wanted.get(unit.sequence, [])
        is_look = unit.stamp_ns - self._looked_ns >= _APART_NS
        if not seen and not is_look:
            return
        try:
            picture = decode_image(unit.payload)
        except SensingError:
            return  # the replay has counted it
        if is_look:
            self._looked_ns = unit.stamp_ns
            self._look(unit, picture, offset_ns)
        boxes = [one.box for one in seen]
        for one in seen:
            item = self._item(unit, picture, one, boxes, offset_ns)
            if item is not None:
                self._items.append(item)
                self.tracks.add(one.track.id)
                self.kept += 1

    def _item(
        self, unit: Unit, picture: Image, one: _Seen, boxes: list[Box], offset_ns: int
    ) -> MemoryItem | None:
        track, box = one
        size = (picture.shape[1], picture.shape[0])
        try:
            look = appearance_of(np.ascontiguousarray(cut(picture, box)))
            visible = visible_share(box, boxes, size)
            quality = ViewQuality(box.height, look.sharpness, visible)
            kept = self._views.offer(track.id, unit.stamp_ns, quality)
            if kept is None:
                return None
            vector = self._encoder.vector(picture, box)
            thumbnail = object_thumbnail(picture, box)
        except EncodingError:
            return None  # nothing of it lies in the picture
        if kept.displaced_ns is not None:
            self._displaced.append(Displaced(track.id, kept.displaced_ns))
            self.kept -= 1
        return replace(
            self._about(unit, picture, offset_ns),
            kind=ViewKind.TRACK,
            track_id=track.id,
            label=track.label,
            box=box,
            score=track.score,
            position=_spot(track.position),
            velocity=_spot(track.velocity),
            size=box.height,
            sharpness=look.sharpness,
            visibility=visible,
            exit=self._encoder.exit,
            vector=vector,
            thumbnail=thumbnail,
        )

    def _look(self, unit: Unit, picture: Image, offset_ns: int) -> None:
        """Keep a whole picture where the scene has changed."""
        if not self._frames.offer(unit.stamp_ns, scene_vector(picture)):
            return
        # It says nothing in the space of objects, and is found by time, place and light.
        nothing = np.zeros(self._encoder.header.length, np.float32)
        about = self._about(unit, picture, offset_ns)
        self._items.append(replace(about, vector=nothing, thumbnail=key_frame_thumbnail(picture)))
        self.kept += 1
        self.key_frames += 1

    def _about(self, unit: Unit, picture: Image, offset_ns: int) -> MemoryItem:
        """Return what is true of all items of a picture, as a key frame."""
        height, width = picture.shape[:2]
        features = self._units.get(unit.sequence)
        state = self._record.ego.at(unit.stamp_ns) if self._record.ego is not None else None
        velocity = state.velocity if state is not None else None
        return MemoryItem(
            kind=ViewKind.KEY_FRAME,
            track_id=0,
            label='',
            stamp_ns=unit.stamp_ns,
            box=Box(0.0, 0.0, float(width), float(height)),
            image_size=(width, height),
            score=0.0,
            drone=_pose(state),
            phase=phase_of(_spot(velocity) if velocity is not None else UNKNOWN_SPOT),
            brightness=appearance_of(picture).brightness,
            bag_offset_ns=offset_ns,
            level=features.level if features is not None else '',
            manifest=self._encoder.header.manifest,
        )

    def _write(self, writer: MemoryWriter) -> None:
        stamps = {(item.track_id, item.stamp_ns) for item in self._items}
        # A view may be displaced before it was ever written.
        gone = {(d.track_id, d.stamp_ns) for d in self._displaced}
        items = [i for i in self._items if (i.track_id, i.stamp_ns) not in gone or not i.track_id]
        writer.add(items, [d for d in self._displaced if (d.track_id, d.stamp_ns) not in stamps])
        self._items, self._displaced = [], []


def _box_in(unit: UnitFeatures, track: Track, place: int) -> Box:
    """Return where the detection is that a track names; feature fusion names none of the unit."""
    assert track.box is not None  # others are left out before
    if 0 <= place < len(unit.detections):
        return unit.detections[place].box
    return track.box


def _spot(values: FloatArray) -> Spot:
    return Spot(*(float(value) for value in values[:3]))


def _pose(state: EgoState | None) -> DronePose:
    if state is None:
        return UNKNOWN_POSE
    rotation = state.pose.rotation
    yaw = math.atan2(float(rotation[1, 0]), float(rotation[0, 0]))
    x, y, z = (float(value) for value in state.pose.translation)
    return DronePose(x, y, z, yaw)
