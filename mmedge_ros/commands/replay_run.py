"""A replay as the command line describes it: run, report, say what matters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from mmedge_ros.commands.display import StatusLine, console, say
from mmedge_ros.commands.errors import stop
from mmedge_ros.core.data_types import Decision
from mmedge_ros.core.device_profile import measured_profile, stage_durations, write_profile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.track_recognition import RecogniserParameters
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.replay.parameter_file import with_parameter_file
from mmedge_ros.replay.picture_recording import PictureParameters
from mmedge_ros.replay.recording import Recording, TopicChoice
from mmedge_ros.report.report import link_video, write_report
from mmedge_ros.report.report_files import REPORT, require_writable
from mmedge_ros.report.report_pictures import NO_PICTURES, RunPictures, run_pictures
from mmedge_ros.report.timed_pictures import recorded_pictures
from mmedge_ros.ros.graph.options import GraphOptions

_NOTES_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class ReplayRequest(GraphOptions):
    """A replay as the command line describes it, and its report; None and '' mean the default."""

    out: Path
    live: bool = False
    save_profile: Path | None = None
    video: bool = False
    show_pictures: bool = True

    @property
    def name(self) -> str:
        """What the recording is called."""
        return Path(self.bag).name


def run_replay(request: ReplayRequest) -> None:
    """Replay, write the report, and print where it is."""
    require_writable(request.out)
    record = _live(request) if request.live else _offline(request)
    with console.status('writing the report'):
        pictures = report_pictures(record, request)
        report = write_report(record, request.out, pictures)
    say(' '.join(report['at_a_glance']['sentences']))
    latency = report['latency_ms']
    if latency['p50'] is not None:
        say(
            f'{report["decisions"]} decisions of {report["windows"]} windows, latency '
            f'p50 {latency["p50"]:.1f} ms, p95 {latency["p95"]:.1f} ms'
        )
    for problem in record.problems[:_NOTES_SHOWN]:
        say(f'note: {problem}')
    if len(record.problems) > _NOTES_SHOWN:
        say(f'note: and {len(record.problems) - _NOTES_SHOWN} more, see the report')
    typer.echo(request.out / 'report.html')
    # Only now: whatever goes wrong here, the report is there.
    if not record.decisions:
        stop('no decision was made; the report says what was wrong in the input')
    if not any(counts.encoded for counts in record.units.values()):
        stop('no message of any sensor could be used; the report says why')
    if request.save_profile:
        _save_profile(record, request.save_profile)
    if request.video:
        _write_video(record, request)


def _say_detector(words: str) -> None:
    say(f'people are found by {words}')


def _live(request: ReplayRequest) -> RunRecord:
    # Imported here: an offline replay also works where ROS is not installed.
    from mmedge_ros.ros.sessions.live_session import replay_live

    options = replace(request, logs=str(request.out / 'logs'))
    with StatusLine(f'live replay of {request.name}') as line:
        return replay_live(
            options,
            lambda share, live: line.show(share, live.newest),
            on_detector=_say_detector,
        )


def _offline(request: ReplayRequest) -> RunRecord:
    with StatusLine(f'offline replay of {request.name}') as line:
        return offline_record(request, line.show, _say_detector)


def offline_record(
    request: ReplayRequest,
    on_progress: Callable[[float, Decision], None] | None = None,
    on_detector: Callable[[str], None] = lambda _: None,
) -> RunRecord:
    """Replay offline as requested; see `replay_offline` for the errors."""
    options = OfflineOptions(
        str(request.bag),
        str(request.detector),
        str(request.calibration),
        str(request.profile),
        TopicChoice(request.camera, request.radar, request.odometry),
        PictureParameters(request.fov, request.fps),
        reuse=request.reuse,
        recogniser=RecogniserParameters(model=request.recogniser),
    )
    if request.params:
        options = with_parameter_file(options, Path(request.params))
    if request.trust_weights:
        options = replace(options, detection=replace(options.detection, trust_weights=True))
    return replay_offline(options, on_progress, on_detector)


def report_offline(
    request: ReplayRequest, folder: Path, on_share: Callable[[float], None] | None = None
) -> None:
    """Replay offline as requested and write the report into a folder."""
    record = offline_record(request, lambda share, _: on_share(share) if on_share else None)
    write_report(record, folder, report_pictures(record, request))


def reported(folder: Path) -> dict[str, Any]:
    """Read the report that was written into a folder."""
    report: dict[str, Any] = json.loads((folder / REPORT).read_bytes())
    return report


def report_pictures(record: RunRecord, request: ReplayRequest) -> RunPictures:
    """Read the pictures that the report shows; none where they are not wanted."""
    if not request.show_pictures:
        return NO_PICTURES
    return run_pictures(record, lambda: _recording(request))


def _recording(request: ReplayRequest) -> Recording:
    topics = TopicChoice(request.camera, request.radar, request.odometry)
    return Recording(request.bag, topics, pictures=PictureParameters(request.fov, request.fps))


def _write_video(record: RunRecord, request: ReplayRequest) -> None:
    """Read the pictures again and write the video; those of a run are never kept."""
    from mmedge_ros.report.video import VIDEO, write_video

    path = request.out / VIDEO
    with _recording(request) as recording, StatusLine('video') as line:
        video = write_video(record, recorded_pictures(recording), path, line.advance)
    link_video(request.out, path.name, video.words)
    say(f'the video: {video.words}')
    typer.echo(path)


def _save_profile(record: RunRecord, path: Path) -> None:
    model = record.software['bundle']
    description = f'{record.mode} replay of {Path(record.bag).name} with {model}'
    path.parent.mkdir(parents=True, exist_ok=True)
    write_profile(measured_profile(description, stage_durations(record)), path)
    say(f'profile: {path}')
