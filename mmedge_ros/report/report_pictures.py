"""The pictures of a report: what the camera saw, with what the run made of it, and its moments.

Moments are worth a look: where the run did best, and where it failed. Pictures may show people;
`NO_PICTURES` makes a report without any.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from mmedge_ros import MmedgeError
from mmedge_ros.core.data_types import NS_PER_S, Decision, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.accuracy_samples import picture_size
from mmedge_ros.report.run_metrics import measured_decisions
from mmedge_ros.report.timed_pictures import RunOverlay, TimedPicture, pictures_from
from mmedge_ros.report.trajectories import start_ns
from mmedge_ros.report.truth_matching import (
    Match,
    counted_people,
    match_boxes,
    person_boxes,
)
from mmedge_ros.viewing.drawing import WHITE, Colour, Picture, legend, status_bar

KINDS = ('best', 'missed', 'false', 'renamed', 'crowded', 'uncertain', 'slowest')
ANIMATION, STRIP = 'animation.webp', 'strip.webp'
PICTURE_NAMES = (ANIMATION, STRIP, *(f'moment_{kind}.webp' for kind in KINDS))
# Widths in pixels; heights follow the camera's shape, up to a square.
_ANIMATION_WIDTH, _STRIP_WIDTH, _MOMENT_WIDTH = 480, 400, 640
_BAR = 20
_ANIMATION_S = 5.0
_ANIMATION_HZ = 10
_STRIP_FRAMES, _STRIP_COLUMNS, _GAP = 9, 3, 6
_QUALITY = 80
# Small enough for the top of a README. A busier scene is encoded with less quality.
_LARGEST_ANIMATION = 700_000
_ANIMATION_QUALITIES = (70, 50, 30)
_EFFORT = 2
_PAPER = 255
_NO_PICTURE = 'There is no picture: the recording holds none that can be decoded.'
# At first nobody has a track yet, which says nothing of a run.
_SETTLING_NS = NS_PER_S


class ReportMoment(NamedTuple):
    """A decision worth a look: one of `KINDS`, what it is called, and a sentence about it."""

    kind: str
    title: str
    sentence: str
    decision: Decision


class _Judged(NamedTuple):
    """A decision beside the truth; ``people`` (P,) are the ids of those in view."""

    decision: Decision
    people: list[int]
    tracks: list[Track]
    match: Match

    @property
    def missed(self) -> int:
        return len(self.people) - self.match.hits


def moments_of(record: RunRecord) -> list[ReportMoment]:
    """Return the moments of a run, each of another kind, those that did not occur left out."""
    judged = _judged(record, record.truth) if record.truth else []
    chosen = _against_truth(judged) if judged else _without_truth(record)
    return [*chosen, *_slowest(record)]


def seconds_of(record: RunRecord, stamp_ns: int) -> float:
    """Return when an instant was, in s since the start of the run."""
    return (stamp_ns - start_ns(record)) / NS_PER_S


def _judged(record: RunRecord, truth: GroundTruth) -> list[_Judged]:
    """Compare the decisions with the truth, where somebody is in view or a track has a box."""
    size = picture_size(record)
    judged = []
    for decision in record.decisions:
        frame = truth.frame_at(decision.state_ns)
        if frame is None:
            continue
        tracks, boxes = person_boxes(decision.tracks, 0.0, size)
        people = frame.ids[counted_people(frame)].tolist()
        if people or tracks:
            judged.append(_Judged(decision, people, tracks, match_boxes(frame, boxes)))
    return judged


def _against_truth(judged: list[_Judged]) -> Iterable[ReportMoment]:
    best = max(judged, key=lambda j: float(j.match.overlaps.sum()) - j.match.false - j.missed)
    if best.match.hits:
        yield ReportMoment(
            'best',
            'Best moment',
            f'{best.match.hits} of {_count(best.people)} in view have a track; the mean overlap '
            f'with the truth (IoU) is {best.match.overlaps.mean():.2f}.',
            best.decision,
        )
    begin_ns = judged[0].decision.state_ns + _SETTLING_NS
    settled = [entry for entry in judged if entry.decision.state_ns >= begin_ns] or judged
    missed = max(settled, key=lambda j: (j.missed, -float(j.match.overlaps.sum())))
    if missed.missed:
        yield ReportMoment(
            'missed',
            'Most people missed',
            f'{missed.missed} of {_count(missed.people)} in view have no track: the dashed boxes '
            'that no coloured one meets.',
            missed.decision,
        )
    false = max(judged, key=lambda j: j.match.false)
    if false.match.false:
        yield ReportMoment(
            'false',
            'Most false tracks',
            f'{false.match.false} of {len(false.tracks)} boxes meet no person: the coloured '
            'boxes without a dashed one.',
            false.decision,
        )
    yield from _renamed(judged)


def _renamed(judged: list[_Judged]) -> Iterable[ReportMoment]:
    """Return the change of id of the person who is largest in the picture."""
    known: dict[int, int] = {}
    changes: list[tuple[float, ReportMoment]] = []
    for entry in judged:
        for person, partner in zip(entry.people, entry.match.partners.tolist(), strict=True):
            if partner < 0:
                continue
            track = entry.tracks[partner]
            before = known.get(person, track.id)
            known[person] = track.id
            if before != track.id:
                sentence = (
                    f'The person who was track {before} before is track {track.id} from here on.'
                )
                moment = ReportMoment('renamed', 'A person changes id', sentence, entry.decision)
                changes.append((track.box.height if track.box else 0.0, moment))
    if changes:
        yield max(changes, key=lambda change: change[0])[1]


def _without_truth(record: RunRecord) -> Iterable[ReportMoment]:
    in_view = [(d, [t for t in d.tracks if t.box is not None]) for d in record.decisions]
    in_view = [(decision, tracks) for decision, tracks in in_view if tracks]
    if not in_view:
        return
    decision, tracks = max(in_view, key=lambda e: (len(e[1]), sum(t.score for t in e[1])))
    if len(tracks) > 1:
        sentence = f'{len(tracks)} tracks are in the picture at once, more than at other times.'
        yield ReportMoment('crowded', 'Most tracks at once', sentence, decision)
    spread, number, decision = max(
        ((_spread(track), track.id, decision) for decision, tracks in in_view for track in tracks),
        key=lambda entry: entry[0],
    )
    if spread > 0.0:
        yield ReportMoment(
            'uncertain',
            'Least certain place',
            f'Of all tracks in the picture the place of track {number} is here known least: '
            f'to {spread:.1f} m (one standard deviation).',
            decision,
        )


def _slowest(record: RunRecord) -> Iterable[ReportMoment]:
    measured = measured_decisions(record)
    if not measured:
        return
    latencies = np.array([decision.latency for decision in measured])
    slowest = measured[int(latencies.argmax())]
    yield ReportMoment(
        'slowest',
        'Slowest answer',
        f'This decision came {1e3 * slowest.latency:.1f} ms after its window, later than all '
        f'others; half of them come within {1e3 * np.median(latencies):.1f} ms.',
        slowest,
    )


def _spread(track: Track) -> float:
    """Return the horizontal standard deviation of a track's place in m; -1 where unknown."""
    with np.errstate(over='ignore', invalid='ignore'):
        spread = float(np.sqrt(np.trace(np.asarray(track.covariance)[:2, :2])))
    return spread if np.isfinite(spread) else -1.0


def _count(people: list[int]) -> str:
    return f'{len(people)} {"person" if len(people) == 1 else "people"}'


class PictureFile(NamedTuple):
    """A picture of the report: WebP file ``name``, ``width`` and ``height`` in pixels.

    ``title`` and ``caption`` are plain text for the page, ``alternative`` says what is shown.
    """

    name: str
    webp: bytes
    width: int
    height: int
    title: str
    caption: str
    alternative: str


class RunPictures(NamedTuple):
    """The pictures of a run; ``absence`` is a sentence that says why there is none."""

    animation: PictureFile | None = None
    strip: PictureFile | None = None
    moments: tuple[PictureFile, ...] = ()
    absence: str = ''

    @property
    def files(self) -> dict[str, bytes]:
        """Contents by the name of their file."""
        shown = (self.animation, self.strip, *self.moments)
        return {picture.name: picture.webp for picture in shown if picture is not None}


NO_PICTURES = RunPictures(absence='This report was made without pictures.')


def run_pictures(record: RunRecord, recording: Callable[[], Recording]) -> RunPictures:
    """Read the pictures that a report shows, and no others, and draw into them.

    :param recording: opens the recording of the run
    :return: pictures, or why there are none: a report is written in any case
    """
    plan = _Plan(record)
    try:
        with recording() as source:
            for instants, shot in pictures_from(source, plan.instants):
                plan.take(instants, shot)
    except MmedgeError as err:
        return RunPictures(absence=f'There are no pictures, because {err}.')
    return plan.pictures()


class _Plan:
    """Which pictures a report shows, and those that were drawn so far."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._overlay = RunOverlay(record)
        self._legend = legend(record.truth is not None)
        self._moments = [(m.decision.state_ns, m) for m in moments_of(record)]
        self._strip_ns = set(_strip_instants(record))
        self._animation_ns = set(_animation_instants(record))
        self._shape = (0, 0)
        self._strip: list[Picture] = []
        self._animation: list[Picture] = []
        self._durations_ms: list[int] = []
        self._drawn: dict[str, PictureFile] = {}

    @property
    def instants(self) -> list[int]:
        """Instants from which on the next picture is shown."""
        return [*self._strip_ns, *self._animation_ns, *(at_ns for at_ns, _ in self._moments)]

    def take(self, instants: Sequence[int], shot: TimedPicture) -> None:
        """Draw the first picture that was there after some of the instants."""
        height, width = shot.picture.shape[:2]
        # All frames have the shape of the first picture; a very tall one is cut to a square.
        self._shape = self._shape if any(self._shape) else (height, max(width, height))
        if not self._strip_ns.isdisjoint(instants):
            self._strip.append(self._known(shot, _STRIP_WIDTH))
        steps = len(self._animation_ns.intersection(instants))
        if steps:
            self._animation.append(self._known(shot, _ANIMATION_WIDTH, self._legend))
            self._durations_ms.append(1000 * steps // _ANIMATION_HZ)
        for at_ns, moment in self._moments:
            is_near = shot.stamp_ns - at_ns <= self._record.window * NS_PER_S
            if at_ns in instants and is_near:
                self._drawn[moment.kind] = self._moment_file(moment, shot)

    def pictures(self) -> RunPictures:
        """Return all that was drawn."""
        if not self._strip:
            return RunPictures(absence=_NO_PICTURE)
        moments = [self._drawn[m.kind] for _, m in self._moments if m.kind in self._drawn]
        return RunPictures(self._animation_file(), self._strip_file(), tuple(moments))

    def _size(self, width: int) -> tuple[int, int]:
        height, wide = self._shape
        return width, max(1, round(width * height / wide))

    def _known(
        self,
        shot: TimedPicture,
        width: int,
        legend: Sequence[tuple[str, Colour]] = (),
    ) -> Picture:
        """Draw what was known when a picture came, with a bar that says when that was."""
        decision = self._overlay.known_at(shot.available_ns)
        frame = self._overlay.frame(shot, decision, *self._size(width), ids_only=True)
        words = [(f'{seconds_of(self._record, shot.stamp_ns):.1f} s', WHITE), *legend]
        return np.concatenate([frame, status_bar(width, _BAR, words)])

    def _animation_file(self) -> PictureFile | None:
        if not self._animation:
            return None
        webp = _animated_webp(self._animation, self._durations_ms)
        height, width = self._animation[0].shape[:2]
        seconds = sum(self._durations_ms) / 1e3
        return PictureFile(
            ANIMATION, webp, width, height,
            'What the camera saw',
            f'The {seconds:.0f} s with most in view, as known when each picture came.'
            f'{self._legend_sentence}',
            'Moving pictures of the camera with boxes and ids of the tracks',
        )  # fmt: skip

    def _strip_file(self) -> PictureFile:
        strip = _grid(self._strip, self._legend)
        height, width = strip.shape[:2]
        return PictureFile(
            STRIP, _webp(strip), width, height,
            'The whole run',
            f'{len(self._strip)} pictures at equal distances in time, as known when each came.',
            'Pictures of the camera in the order of time with boxes and ids of the tracks',
        )  # fmt: skip

    def _moment_file(self, moment: ReportMoment, shot: TimedPicture) -> PictureFile:
        """Draw a decision into the picture of its state time."""
        frame = self._overlay.frame(shot, moment.decision, *self._size(_MOMENT_WIDTH))
        seconds = seconds_of(self._record, shot.stamp_ns)
        return PictureFile(
            f'moment_{moment.kind}.webp', _webp(frame), frame.shape[1], frame.shape[0],
            f'{moment.title}, {seconds:.1f} s',
            moment.sentence,
            f'The picture at {seconds:.1f} s with boxes and ids of the tracks',
        )  # fmt: skip

    @property
    def _legend_sentence(self) -> str:
        dashed = ', dashed white boxes the people really there' if self._record.truth else ''
        return f' Coloured boxes are tracks with their ids{dashed}.'


def _strip_instants(record: RunRecord) -> list[int]:
    """Return the middles of nine equal parts of the time in which there are pictures."""
    if not record.camera_stamps_ns:
        return []
    begin_ns, end_ns = min(record.camera_stamps_ns), max(record.camera_stamps_ns)
    step = (end_ns - begin_ns) / _STRIP_FRAMES
    return [begin_ns + round((place + 0.5) * step) for place in range(_STRIP_FRAMES)]


def _animation_instants(record: RunRecord) -> list[int]:
    """Return the instants of the stretch in which the tracks in the picture are largest."""
    if len(record.camera_stamps_ns) < 2:
        return []
    first_ns, last_ns = min(record.camera_stamps_ns), max(record.camera_stamps_ns)
    length_ns = round(_ANIMATION_S * NS_PER_S)
    decisions = sorted(record.decisions, key=lambda decision: decision.state_ns)
    states = np.array([decision.state_ns for decision in decisions], np.int64)
    heights = [sum(t.box.height for t in d.tracks if t.box is not None) for d in decisions]
    total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(heights))])
    begins = np.clip(states, first_ns, max(last_ns - length_ns, first_ns))
    shown = total[np.searchsorted(states, begins + length_ns)]
    shown -= total[np.searchsorted(states, begins)]
    begin_ns = int(begins[shown.argmax()]) if len(begins) else first_ns
    step_ns = NS_PER_S // _ANIMATION_HZ
    return list(range(begin_ns, min(begin_ns + length_ns, last_ns), step_ns))


def _grid(frames: Sequence[Picture], words: Sequence[tuple[str, Colour]]) -> Picture:
    """Put frames of one size side by side in rows, with a legend below."""
    height, width = frames[0].shape[:2]
    columns = min(_STRIP_COLUMNS, len(frames))
    rows = -(-len(frames) // columns)
    wide = columns * (width + _GAP) - _GAP
    grid = np.full((rows * (height + _GAP), wide, 3), _PAPER, np.uint8)
    for place, frame in enumerate(frames):
        y, x = place // columns * (height + _GAP), place % columns * (width + _GAP)
        grid[y : y + height, x : x + width] = frame
    return np.concatenate([grid, status_bar(wide, 2 * _BAR, words)])


def _webp(picture: Picture) -> bytes:
    content = io.BytesIO()
    _image(picture).save(content, 'WEBP', quality=_QUALITY)
    return content.getvalue()


def _animated_webp(frames: Sequence[Picture], durations_ms: Sequence[int]) -> bytes:
    """Encode frames that loop; the busier they are, the less quality they get."""
    webp = b''
    for quality in _ANIMATION_QUALITIES:
        content = io.BytesIO()
        images = map(_image, frames)
        next(images).save(
            content, 'WEBP', save_all=True, append_images=images, loop=0,
            duration=list(durations_ms), quality=quality, method=_EFFORT,
        )  # fmt: skip
        webp = content.getvalue()
        if len(webp) <= _LARGEST_ANIMATION:
            break
    return webp


def _image(picture: Picture) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(picture[:, :, ::-1]))
