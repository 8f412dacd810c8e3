"""The `mmedge` command line: demo, replay, up."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from mmedge_ros.display import StatusLine, say

# The span in which the recording's own sensors are sound; see the data's notes.
_DEMO_FRAMES = (20, 319)

app = typer.Typer(
    name='mmedge',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode='rich',
    help='Real-time multimodal perception for drones: camera and mmWave radar, pipelined.',
    epilog='./mmedge test runs format, lint, types and tests; its arguments go to pytest.',
)

BagArgument = Annotated[
    Path, typer.Argument(exists=True, help='rosbag2 folder, or a single .mcap or .db3 file')
]
DetectorOption = Annotated[
    Path | None,
    typer.Option(
        '--detector', exists=True, help='weights (.onnx, .pt) or bundle folder \\[shipped bundle]'
    ),
]
MotArgument = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help='frame,id,x,y,w,h,conf,x,y,z')
]
CalibrationOption = Annotated[
    Path | None,
    typer.Option(
        '--calibration',
        exists=True,
        dir_okay=False,
        help='camera_info YAML (and transforms) to use instead of the recorded calibration',
    ),
]
ParamsOption = Annotated[
    Path | None,
    typer.Option('--params', exists=True, dir_okay=False, help='ROS parameter file'),
]
CameraOption = Annotated[str, typer.Option('--camera', help='camera topic, if not found by type')]
RadarOption = Annotated[str, typer.Option('--radar', help='radar topic, if not found by type')]
RateOption = Annotated[
    float,
    typer.Option('--rate', min=0.05, max=20.0, help='speed of a live replay; not 1: on /clock'),
]


@app.command()
def demo(
    out: Annotated[Path, typer.Option('--out', help='folder of the report')] = Path('out/demo'),
) -> None:
    """Track three people in a recorded night walk, live, with every node a process."""
    from mmedge_ros.replay.recording import demo_recording
    from mmedge_ros.replay_command import ReplayRequest, plain_errors, run_replay

    with plain_errors():
        recording = demo_recording(os.environ.get('MMEDGE_DATA', ''))
        boxes = next(iter(sorted(recording.parent.glob('*auto_person_boxes*.csv'))), None)
        run_replay(ReplayRequest(recording, out, live=True, boxes=boxes, frames=_DEMO_FRAMES))


@app.command()
def replay(
    bag: BagArgument,
    out: Annotated[Path, typer.Option('--out', help='folder of the report')] = Path('out/replay'),
    live: Annotated[
        bool, typer.Option('--live', help='through the ROS graph instead of in virtual time')
    ] = False,
    detector: DetectorOption = None,
    calibration: CalibrationOption = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            '--profile',
            exists=True,
            dir_okay=False,
            help='service times from a device profile: the same result every time (offline)',
        ),
    ] = None,
    save_profile: Annotated[
        Path | None,
        typer.Option('--save-profile', help='write the measured service times as a profile'),
    ] = None,
    params: ParamsOption = None,
    camera: CameraOption = '',
    radar: RadarOption = '',
    rate: RateOption = 1.0,
    clock: Annotated[
        bool, typer.Option('--clock', help='run the live graph on /clock also at rate 1')
    ] = False,
    boxes: Annotated[
        Path | None,
        typer.Option(
            '--boxes',
            exists=True,
            dir_okay=False,
            help='CSV (frame,x0,y0,x1,y1,score) to compare with',
        ),
    ] = None,
    frames: Annotated[
        str, typer.Option('--frames', help='FIRST:LAST camera frames to compare')
    ] = '',
    video: Annotated[
        bool,
        typer.Option(
            '--video',
            help='also write video.mp4: what the camera saw, people included, with the tracks '
            'drawn in; it is kept apart from report.html, so that you decide who sees it',
        ),
    ] = False,
) -> None:
    """Replay a recording and write a report."""
    span = _frame_span(frames)
    if frames and boxes is None:
        raise typer.BadParameter('the frames of what? name a file with --boxes')
    _check_combination(live, profile, rate, clock)
    from mmedge_ros.replay.recording import TopicChoice
    from mmedge_ros.replay_command import ReplayRequest, plain_errors, run_replay

    with plain_errors():
        run_replay(
            ReplayRequest(
                bag,
                out,
                live,
                detector,
                calibration,
                profile,
                save_profile,
                params,
                TopicChoice(camera=camera, radar=radar),
                rate,
                clock,
                boxes,
                span,
                video,
            )
        )


@app.command()
def up(
    bag: Annotated[
        Path | None, typer.Option('--bag', exists=True, help='play this recording as the sensors')
    ] = None,
    loop: Annotated[
        bool, typer.Option('--loop', help='start the recording over and over')
    ] = False,
    rate: RateOption = 1.0,
    clock: Annotated[bool, typer.Option('--clock', help='publish and follow /clock')] = False,
    detector: DetectorOption = None,
    calibration: CalibrationOption = None,
    params: ParamsOption = None,
    camera: CameraOption = '',
    radar: RadarOption = '',
    transport: Annotated[
        str, typer.Option('--image-transport', help='raw or compressed pictures (without --bag)')
    ] = 'raw',
    transform: Annotated[
        list[str] | None,
        typer.Option('--transform', help='"parent child x y z qx qy qz qw" (m), repeatable'),
    ] = None,
    logs: Annotated[Path, typer.Option('--logs', help="folder of the nodes' logs")] = Path(
        'out/logs'
    ),
    single_process: Annotated[
        bool, typer.Option('--single-process', help='all nodes in one process, to debug')
    ] = False,
) -> None:
    """Start the graph and keep it running until Ctrl-C."""
    if transport not in ('raw', 'compressed'):
        raise typer.BadParameter('choose raw or compressed', param_hint='--image-transport')
    if bag is None and (loop or rate != 1.0):
        raise typer.BadParameter('--loop and --rate belong to --bag; sensors have their own pace')
    from mmedge_ros.replay.recording import TopicChoice
    from mmedge_ros.replay_command import plain_errors

    with plain_errors():
        from mmedge_ros.ros.up_session import UpOptions, run_up

        options = UpOptions(
            bag=str(bag or ''),
            loop=loop,
            rate=rate,
            clock=clock,
            detector=str(detector or ''),
            calibration=str(calibration or ''),
            params=params,
            topics=TopicChoice(camera=camera, radar=radar),
            image_transport=transport,
            transforms=tuple(transform or ()),
            logs=logs,
            single_process=single_process,
        )
        with StatusLine('up') as line:
            run_up(options, line.show, say)


@app.command()
def parameters(
    write: Annotated[
        Path | None,
        typer.Option('--write', exists=True, dir_okay=False, help='document to bring up to date'),
    ] = None,
) -> None:
    """Show every node's parameters as Markdown tables."""
    from mmedge_ros.replay_command import plain_errors

    with plain_errors():
        from mmedge_ros.ros.parameter_tables import parameter_tables, write_tables

        if write is None:
            typer.echo(parameter_tables())
        else:
            write_tables(write)


@app.command('evaluate-mot')
def evaluate_mot(
    truth: MotArgument,
    result: MotArgument,
    report: Annotated[
        Path | None, typer.Option('--json', dir_okay=False, help='write the figures here as well')
    ] = None,
) -> None:
    """Judge any tracker's output in MOTChallenge text by the ground truth."""
    from mmedge_ros.mot_command import run_evaluate_mot
    from mmedge_ros.replay_command import plain_errors

    with plain_errors():
        run_evaluate_mot(truth, result, report)


@app.command('track-mot')
def track_mot(
    detections: MotArgument,
    out: Annotated[
        Path, typer.Option('--out', dir_okay=False, help='file for the tracks, the same format')
    ],
    width: Annotated[
        int, typer.Option('--width', help='of the pictures, px; 0: extent of the boxes')
    ] = 0,
    height: Annotated[
        int, typer.Option('--height', help='of the pictures, px; 0: extent of the boxes')
    ] = 0,
    fps: Annotated[float, typer.Option('--fps', help='pictures per second')] = 25.0,
) -> None:
    """Track the boxes of any detector in MOTChallenge text, without radar."""
    from mmedge_ros.evaluation.mot_tracking import MotCamera
    from mmedge_ros.mot_command import run_track_mot
    from mmedge_ros.replay_command import plain_errors

    with plain_errors():
        run_track_mot(detections, out, MotCamera(width, height, fps))


def _frame_span(text: str) -> tuple[int | None, int | None]:
    if not text:
        return None, None
    first, colon, last = text.partition(':')
    if not colon or not all((end or '0').isdecimal() and len(end) < 10 for end in (first, last)):
        raise typer.BadParameter(f'{text!r} does not read FIRST:LAST', param_hint='--frames')
    if first and last and int(first) > int(last):
        raise typer.BadParameter(f'{text!r} ends before it begins', param_hint='--frames')
    return int(first) if first else None, int(last) if last else None


def _check_combination(live: bool, profile: Path | None, rate: float, clock: bool) -> None:
    if live and profile:
        raise typer.BadParameter(
            'a live replay takes the time it takes; leave out --live or --profile'
        )
    if not live and (rate != 1.0 or clock):
        raise typer.BadParameter('--rate and --clock belong to --live; offline time is virtual')


class _Stopped(SystemExit):
    """Unwinds the stack, so that nothing is left running, and ends with a shell's exit code."""


_received: list[int] = []


def _stop(number: int, _: object) -> NoReturn:
    _received.append(number)
    raise _Stopped(128 + number)


def main() -> None:
    """Run the command line."""
    # Also Ctrl-C: started with & from a script, Python would ignore it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        app(prog_name='mmedge')
    except BaseException as err:
        if not _received:
            raise
        # Unwound in the middle of something, the stack may end in another error than ours.
        say('stopped')
        raise _Stopped(128 + _received[0]) from err


if __name__ == '__main__':
    main()
