"""`mmedge calibrate`: how radar and camera sit to each other, from people in a recording."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.graph_options import takes
from mmedge_ros.commands.options import BagArgument, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts
from mmedge_ros.ros.graph.options import REPLAY

if TYPE_CHECKING:
    from mmedge_ros.replay.extrinsics.calibrate import CalibrationResult

# Shares that fall by less are the same.
_WORSE = 0.02
_MEANINGS = {
    'yaw': 'radar turned to the left',
    'pitch': 'radar turned down',
    'roll': 'right side of the radar turned down',
    'time': 'radar stamps later than camera stamps',
}


@takes(REPLAY, only=('detector', 'calibration', 'camera', 'radar'))
def calibrate(
    bag: BagArgument,
    out: Annotated[
        Path, option('--out', 'FILE', 'file to write the extrinsics to', dir_okay=False)
    ] = Path('out/extrinsics.yaml'),
    **shared: Any,
) -> None:
    """Estimate rotation and time offset between radar and camera from people who walk.

    Record half a minute of one or two people who walk across and towards the rig, 4 to 12 m
    away. Positions are kept as the recording, or --calibration, has them.
    """
    with plain_errors():
        from mmedge_ros.geometry.calibration import read_calibration
        from mmedge_ros.replay.extrinsics.calibrate import calibrate as estimate
        from mmedge_ros.replay.extrinsics.extrinsics_file import (
            calibrated_transforms,
            write_extrinsics,
        )
        from mmedge_ros.replay.extrinsics.sightings import observe
        from mmedge_ros.replay.offline_session import detector_problems, replay_detector
        from mmedge_ros.replay.recording import Recording, TopicChoice

        choice = TopicChoice(camera=shared['camera'], radar=shared['radar'])
        with (
            Recording(bag, choice, shared['calibration']) as recording,
            StatusLine(f'calibrating by {bag.name}') as line,
        ):
            model = replay_detector(recording, shared['detector'])
            for problem in detector_problems(model, recording):
                say(f'note: {problem}')
            sightings = observe(
                recording, model, lambda share: line.advance(0.8 * share, 'detecting people')
            )
            result = estimate(
                sightings, lambda share: line.advance(0.8 + 0.2 * share, 'estimating')
            )
            notes = [*recording.bag.problems, *recording.problems, *result.notes]
        transforms = calibrated_transforms(sightings, result)
        lens = (
            read_calibration(Path(shared['calibration'])).camera if shared['calibration'] else None
        )
        write_extrinsics(
            out, transforms, _comments(bag, result), lens, datetime.now(timezone.utc).date()
        )
    for note in notes:
        say(f'note: {note}')
    _print(result)
    for sentence in _verdict(result):
        say(sentence)
    typer.echo(out)


def _print(result: CalibrationResult) -> None:
    changes = new_table('change against the start', 'what', 'change', '95 % interval', 'positive')
    for name, meaning in _MEANINGS.items():
        change, interval = _words(result, name)
        add_row(changes, name, change, interval, meaning)
    checks = new_table('agreement', 'share', 'start', 'calibrated', 'good')
    before, after = result.before, result.after
    add_row(
        checks,
        'boxes of people that hold moving returns',
        _percent(before.filled),
        _percent(after.filled),
        'about 95 %',
    )
    add_row(
        checks,
        'moving returns inside a box of a person',
        _percent(before.inside),
        _percent(after.inside),
        'about 80 %',
    )
    print_parts(changes, '', checks)


def _words(result: CalibrationResult, name: str) -> tuple[str, str]:
    estimate = result.estimates[name]
    if not estimate.observable:
        return 'not observable', '-'
    scale, unit, digits = (1e3, 'ms', 0) if name == 'time' else (math.degrees(1.0), 'deg', 2)
    value, half = scale * estimate.value, scale * estimate.half
    return (
        f'{value:+.{digits}f} {unit}',
        f'{value - half:+.{digits}f} to {value + half:+.{digits}f} {unit}',
    )


def _percent(share: float) -> str:
    return '-' if math.isnan(share) else f'{100 * share:.0f} %'


def _comments(bag: Path, result: CalibrationResult) -> list[str]:
    """Say above the transforms where they come from."""
    from mmedge_ros.commands.display import one_line

    changes = [': '.join((name, ', '.join(_words(result, name)))) for name in _MEANINGS]
    return [
        f'Written by `mmedge calibrate` from {one_line(bag.name)}.',
        'Changes against the start, with their 95 % intervals; positions are those of the start:',
        *changes,
        'The time offset is a parameter of the fusion node: pipeline.time_offset, in s.',
    ]


def _verdict(result: CalibrationResult) -> list[str]:
    """Say what to do with the result."""
    sentences = []
    before, after = result.before, result.after
    if after.filled < before.filled - _WORSE or after.inside < before.inside - _WORSE:
        sentences.append(
            'the start agrees better than the result: keep the start, and record again with one '
            'or two people alone in the open'
        )
    elif not any(estimate.differs for estimate in result.estimates.values()):
        sentences.append('the start lies inside all intervals: nothing has to be changed')
    time = result.estimates['time']
    if time.differs:
        sentences.append(
            f'give the time offset to the graph, or to a replay, by --params: fusion, '
            f'pipeline.time_offset: {time.value:.3f}'
        )
    return sentences
