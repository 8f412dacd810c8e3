"""The page of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mmedge_ros.report.page import Tile, milliseconds, number, percent, render_page
from mmedge_ros.report.report_pictures import NO_PICTURES, RunPictures

if TYPE_CHECKING:
    from mmedge_ros.report.figure_style import FigureFile

_MOST_TRACKS = 40
_MOST_PROBLEMS = 8
_MOST_FOLDED = 300
_MOST_STAGES = 40
_MOST_LACKS = 12
_LONGEST_NAME = 120

# What becomes of a unit, in the order in which it can happen to it.
COUNTERS = (
    ('captured', 'measured by the sensor'),
    ('transferred', 'handed over by the driver'),
    ('received', 'seen by the encoder'),
    ('encoded', 'encoded, each once'),
    ('followed', 'not encoded: objects of an earlier unit moved with the image'),
    ('skipped', 'skipped on purpose, by a skip lease'),
    ('thinned', 'above the configured rate'),
    ('dropped', 'fell out of a full queue'),
    ('failed', 'could not be decoded'),
    ('lost', 'transferred and never received'),
    ('late', 'still in work when its first window had to close'),
)
_JUDGED = (
    ('streaming_mean_iou', 'every 10 ms: the latest published result against the truth'),
    ('streaming_mean_iou_decisions', 'the same of decisions alone, without the updates between'),
    ('mean_iou', 'at the state times of decisions; 0 for missed people'),
    ('mean_iou_20px', 'the same, of people at least 20 px tall'),
    ('recall', 'share of visible people met by a box (IoU at least 0.5)'),
    ('precision', 'share of judged boxes that meet a person'),
)
_STRATA = (
    ('by_size', 'height, px'),
    ('by_range', 'range, m'),
    ('by_occlusion', 'to be seen'),
)
_LACKS = (
    ('late', ' closed at the deadline with {} readings still in work'),
    ('lost', ' received nothing of the {} during their window'),
    ('skipped', ' had {} readings skipped on purpose'),
    ('degraded', ': {}'),
)


def render_run_page(
    report: Mapping[str, Any],
    figures: Sequence[FigureFile],
    pictures: RunPictures = NO_PICTURES,
    view: Mapping[str, Any] | None = None,
) -> str:
    """Render the page of a run from the content of report.json, the figures and pictures.

    :param view: the content of `top_view`
    """
    problems = list(Counter(report['problems']).items())
    return render_page(
        'report.html.j2',
        report,
        figures,
        pictures=pictures,
        title=recording_name(report['bag']),
        summary=summary(report),
        tiles=headline(report),
        top_view=view,
        counters=COUNTERS,
        judged=_JUDGED,
        strata=_strata(report['accuracy']),
        nees_note=_nees_note(report['accuracy']),
        lacks=_lacks(report),
        stages=list(report['stages_ms'].items())[:_MOST_STAGES],
        tracks=report['tracks'][:_MOST_TRACKS],
        problems=problems[:_MOST_PROBLEMS],
        folded=problems[_MOST_PROBLEMS : _MOST_PROBLEMS + _MOST_FOLDED],
        unlisted=max(len(problems) - _MOST_PROBLEMS - _MOST_FOLDED, 0),
    )


def recording_name(bag: str) -> str:
    """Return the last part of a bag's path, which is what people call it."""
    return PurePath(bag).name or bag or 'recording'


def summary(report: Mapping[str, Any]) -> str:
    """Say in plain words what the run was."""
    words = [_kind(report['mode'], report['profile'])]
    if report['duration_s']:
        words.append(
            f'{number(report["duration_s"])} s of recording took '
            f'{number(report["wall_time_s"])} s.'
        )
    words.append(
        f'A decision is made every {number(report["stride_ms"], 0)} ms from the readings of '
        f'the last {number(report["window_ms"], 0)} ms.'
    )
    warm = report['warmup_decisions']
    if warm == 1:
        words.append('The first decision is left out of the latency statistics as warm-up.')
    elif warm:
        words.append(
            f'The first {warm} decisions are left out of the latency statistics as warm-up.'
        )
    return ' '.join(words)


def _kind(mode: str, profile: str) -> str:
    if mode == 'live':
        where = f' on {profile}' if profile else ''
        return (
            f'Live run{where}: the recording was played in real time to the running nodes, and '
            f'these are the results they published.'
        )
    if mode == 'offline':
        times = f'taken from the profile {profile}' if profile else 'measured on this machine'
        return (
            f'Offline replay in virtual time: the recording was read in one process, with '
            f'service times {times}.'
        )
    return f'Run of kind {mode}' + (f' with the profile {profile}.' if profile else '.')


def headline(report: Mapping[str, Any]) -> list[Tile]:
    """Choose the figures at the top of the page."""
    latency, camera = report['latency_ms'], report['age_ms']['camera']
    labels = Counter(track['label'] for track in report['tracks'])
    words = ', '.join(f'{label[:20]}: {n}' for label, n in labels.most_common(3))
    dropped = f', {report["dropped"]} dropped' if report['dropped'] else ''
    early = f', {report["early"]} early' if report['early'] else ''
    updates = f', {report["updates"]} updates between' if report['updates'] else ''
    missed = percent(report['deadline_miss_rate'])
    accuracy = report['accuracy']
    right = [] if accuracy is None else [_streaming_tile(accuracy)]
    return [
        *right,
        Tile(
            'decisions',
            number(report['decisions'], 0),
            f'of {number(report["windows"], 0)} windows{dropped}{early}{updates}',
        ),
        Tile('latency, median', milliseconds(latency['p50']), 'publication − window end'),
        Tile(
            'latency, p95', milliseconds(latency['p95']), f'longest {milliseconds(latency["max"])}'
        ),
        Tile(
            'camera age, p95', milliseconds(camera['p95']), f'median {milliseconds(camera["p50"])}'
        ),
        Tile('deadline misses', missed, f'deadline {milliseconds(report["deadline_ms"])}'),
        Tile('ids given', number(len(report['tracks']), 0), words or 'no track was confirmed'),
    ]


def _streaming_tile(accuracy: Mapping[str, Any]) -> Tile:
    lost = None
    if accuracy['streaming_mean_iou'] is not None:
        lost = accuracy['streaming_mean_iou_at_once'] - accuracy['streaming_mean_iou']
    return Tile(
        'streaming mean IoU',
        number(accuracy['streaming_mean_iou'], 3),
        f'overlap of boxes, 0 to 1; latency takes {number(lost, 3)}',
    )


def _nees_note(accuracy: Mapping[str, Any] | None) -> str:
    if accuracy is None or not accuracy['nees']['samples']:
        return 'nothing was located'
    nees = accuracy['nees']
    bounds = f'{number(nees["low"], 2)} to {number(nees["high"], 2)}'
    where = 'within' if nees['in_bounds'] else 'outside'
    return (
        f'{where} {bounds}; {nees["dof"]} is consistent; '
        f'{number(100.0 * nees["outside_95"], 0)} % of samples outside their own 95 % bound'
    )


def _strata(accuracy: Mapping[str, Any] | None) -> list[tuple[str, str, Mapping[str, Any]]]:
    """List the strata that hold people: what groups them, name, values."""
    if accuracy is None:
        return []
    return [
        (words, name, values)
        for key, words in _STRATA
        for name, values in accuracy[key].items()
        if values['people']
    ]


def _lacks(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List how many decisions had to do without something, and what it was."""
    decisions = report['decisions']
    return [
        (f'{count} of {decisions}', words.replace('{}', what[:_LONGEST_NAME]))
        for name, words in _LACKS
        for what, count in list(report['decisions_with'][name].items())[:_MOST_LACKS]
    ]
