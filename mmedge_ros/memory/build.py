"""Makes the memory of a recorded flight: it is replayed for its tracks, and read once more.

The second reading decodes only pictures that show what is to be kept. All labels of the detector
are tracked, people and others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    Configuration,
    Unit,
)
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.pair_description import pair_warning
from mmedge_ros.encoding.recent_pictures import box_in
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.encoders import ViewEncoder, bundle_that_embeds, open_encoder
from mmedge_ros.memory.keeper import MOST_IN_BATCH, OpenBatch
from mmedge_ros.memory.moment import MemoryItem
from mmedge_ros.memory.store import MemoryWriter, memory_folder
from mmedge_ros.memory.store_file import FILE_NAME, remove_older
from mmedge_ros.memory.views import (
    LEAST_HEIGHT,
    ChosenView,
    SeenObject,
    ViewMaker,
    about_picture,
    seen_track,
    with_drone,
)
from mmedge_ros.replay.offline_session import OnShare, follow_everything, replay_detector
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image

# Views of a track, and looks at the scene, are this far apart at least: what is nearer in time
# shows the same.
_APART_NS = NS_PER_S // 5
# Of the time: replaying takes most of it.
_REPLAYING = 0.8


@dataclass(frozen=True)
class BuiltMemory:
    """The result of a build: ``items`` views of ``tracks`` tracks and ``key_frames``.

    ``problems`` are sentences about what the recording lacks; ``record`` is what the replay left.
    """

    folder: Path
    items: int
    tracks: int
    key_frames: int
    problems: tuple[str, ...]
    record: RunRecord | None = None


def build_memory(
    recording: str,
    detector: str = '',
    on_share: OnShare = lambda _share, _words: None,
    configurations: tuple[Configuration, ...] = (),
    encoder: str = '',
    profile: str = '',
) -> BuiltMemory:
    """Make the memory of a recording; it replaces an existing one, also of an older format.

    :param detector: model or bundle; '' takes what suits the recording
    :param configurations: those that take effect while it is replayed
    :param encoder: bundle or pair that embeds; '' is the detector's bundle, or if that has no
        recogniser, another one
    :param profile: device profile for its service times; '' measures them
    :raises ReplayError: if the recording cannot be read
    :raises EncodingError: if the bundle cannot be used
    :raises FlightMemoryError: if the memory cannot be written
    """
    with Recording(recording) as opened:
        if CAMERA not in opened.modalities:
            raise FlightMemoryError(f'{recording} has no pictures, so nothing can be kept of it')
        model = replay_detector(opened, detector)
        embedding = default_detector(encoder) if encoder else bundle_that_embeds(model)
        warning = pair_warning(embedding, opened.is_simulated)
    opened_encoder = open_encoder(embedding)
    folder = memory_folder(recording)
    remove_older(folder)
    is_there = (folder / FILE_NAME).exists()
    # Opened first: what cannot be written is said before the flight is replayed.
    with MemoryWriter(folder, None if is_there else opened_encoder.header) as writer:
        record = follow_everything(
            recording,
            str(model),
            lambda share, words: on_share(_REPLAYING * share, words),
            profile,
            configurations,
        )
        writer.forget_all()
    builder = _Builder(record, opened_encoder)
    with MemoryWriter(folder, opened_encoder.header) as writer:
        with Recording(recording) as opened:
            builder.read(opened, writer, on_share)
        writer.compact()
    return BuiltMemory(
        *(folder, builder.kept, len(builder.tracks), builder.key_frames),
        (*([warning] if warning else []), *record.problems),
        record,
    )


class _Builder:
    """Chooses views of a replayed flight and hands them to a writer."""

    def __init__(self, record: RunRecord, encoder: ViewEncoder) -> None:
        self.kept = self.key_frames = 0
        self.tracks: set[int] = set()
        self._record = record
        self._views, self._batch = ViewMaker(), OpenBatch(encoder)
        self._units = {f.sequence: f for f in record.features if f.modality == CAMERA}
        self._wanted = self._seen()
        self._looked_ns = -_APART_NS

    def read(self, recording: Recording, writer: MemoryWriter, on_share: OnShare) -> None:
        """Read all pictures that may show something, and write what is kept of them."""
        first_ns, last_ns = recording.arrivals_ns()
        for unit in recording.units():
            if unit.modality != CAMERA:
                continue
            share = (unit.available_ns - first_ns) / max(last_ns - first_ns, 1)
            on_share(_REPLAYING + (1.0 - _REPLAYING) * share, f'{self.kept} views')
            self._take(unit, max(unit.available_ns - first_ns, 0), writer)
        self._batch.write(writer)

    def _seen(self) -> dict[int, list[SeenObject]]:
        """Return what is seen in which camera unit, by sequence; each track now and then."""
        seen: dict[int, list[SeenObject]] = defaultdict(list)
        looked: dict[int, int] = {}
        for decision in self._record.decisions:
            for track in decision.tracks:
                key = track.detection
                unit = self._units.get(key.unit_sequence) if key is not None else None
                if unit is None or unit.followed:
                    continue
                if unit.stamp_ns - looked.get(track.id, -_APART_NS) < _APART_NS:
                    continue
                box = box_in(unit.detections, track)
                if box is not None and box.height >= LEAST_HEIGHT:
                    looked[track.id] = unit.stamp_ns
                    seen[unit.sequence].append(seen_track(track, box))
        return seen

    def _take(self, unit: Unit, offset_ns: int, writer: MemoryWriter) -> None:
        seen = self._wanted.get(unit.sequence, [])
        is_look = unit.stamp_ns - self._looked_ns >= _APART_NS
        if not seen and not is_look:
            return
        try:
            picture = decode_image(unit.payload)
        except SensingError:
            return  # the replay has counted it
        about = self._about(unit, picture, offset_ns)
        if is_look:
            self._looked_ns = unit.stamp_ns
            if self._keep(self._views.scene(picture, about), writer):
                self.key_frames += 1
        boxes = [one.box for one in seen]
        for one in seen:
            if self._keep(self._views.object(picture, about, one, boxes), writer):
                self.tracks.add(one.number)

    def _keep(self, view: ChosenView | None, writer: MemoryWriter) -> bool:
        if view is not None:
            self.kept += view.displaced_ns is None
            self._batch.add(view)
        if len(self._batch) >= MOST_IN_BATCH:
            self._batch.write(writer)
        return view is not None

    def _about(self, unit: Unit, picture: Image, offset_ns: int) -> MemoryItem:
        features = self._units.get(unit.sequence)
        level = features.level if features is not None else ''
        about = about_picture(picture, unit.stamp_ns, level)
        state = self._record.ego.at(unit.stamp_ns) if self._record.ego is not None else None
        return with_drone(replace(about, bag_offset_ns=offset_ns), state)
