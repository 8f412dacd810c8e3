"""What happened in a run at one glance: a few figures, and the sentences that say them.

A visible person is *followed* in a window where a track of their own is within 2 m on the ground,
whatever sensor saw it. *For most of the time* means in at least 80 % of the windows in which the
person was visible, windows without a decision included; *hardly* means in less than 20 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.ground_truth import PERSON
from mmedge_ros.report.accuracy import Accuracy
from mmedge_ros.report.trajectories import Trajectory

# From this share on something is worth a sentence at the top of a report.
_WORTH_SAYING = 0.01
_UNITS = {CAMERA: ('picture', 'pictures'), RADAR: ('radar scan', 'radar scans')}
_MOST_NEW = 5
_SHARES = (
    ('mostly_followed', 'for most of the time'),
    ('partly_followed', 'for part of the time'),
    ('hardly_followed', 'hardly or not at all'),
)
_LIGHTER = (
    'A smaller model (--detector) or a lower rate needs less time; --optimise chooses both in a '
    'live run.'
)


class Limit(NamedTuple):
    """Something that a run had to do without, and what helps."""

    what: str
    remedy: str


def glance_figures(
    record: RunRecord, tracks: Sequence[Trajectory], accuracy: Accuracy | None
) -> dict[str, int | None]:
    """Return how many people there were and how they were followed; None without ground truth.

    ``ids`` counts the tracks of people, ``people_at_once`` the most in one decision that were
    measured within its window.
    """
    at_once = [
        sum(track.label == PERSON and track.age <= record.window for track in decision.tracks)
        for decision in record.decisions
    ]
    figures: dict[str, int | None] = {
        'people_at_once': max(at_once, default=0),
        'ids': sum(track.label == PERSON for track in tracks),
    }
    unknown = dict.fromkeys((*(key for key, _ in _SHARES), 'matched_ids', 'unmatched_ids'))
    if accuracy is None:
        return figures | {'people': None} | unknown
    followed = accuracy.followed
    if not followed.frames:  # places could not be compared
        return figures | {'people': accuracy.tracking.true_ids} | unknown
    matched, ids = followed.matched_ids or 0, followed.result_ids or 0
    return figures | {
        'people': followed.true_ids,
        'mostly_followed': followed.mostly_tracked,
        'partly_followed': followed.partially_tracked,
        'hardly_followed': followed.mostly_lost,
        'matched_ids': matched,
        'unmatched_ids': ids - matched,
    }


def sentences(report: Mapping[str, Any]) -> list[str]:
    """Say in plain words what happened, from the content of report.json."""
    if not report['decisions']:
        return ['No answer was given, so that there is nothing to say about people.']
    words = [*_people(report), *_new_in_view(report), *_answers(report), *_radar(report)]
    if detector := report['software'].get('detector'):
        words.append(f'People were found by {detector}.')
    if not report['accuracy']:
        words.append(
            'This recording has no ground truth: how many people there really were, and how '
            'exact their places are, is not known.'
        )
    return words


def _people(report: Mapping[str, Any]) -> Iterator[str]:
    glance = report['at_a_glance']
    people = glance['people']
    if people is None:
        most, ids = glance['people_at_once'], glance['ids']
        if not most:
            yield 'No person was tracked.'
            return
        length = f' in {report["duration_s"]:.0f} s' if report['duration_s'] else ''
        yield f'Up to {_counted(most)} tracked at once, under {_ids(ids)}{length}.'
        return
    yield from people_words(glance)
    yield from _returns(report['tracking']['returns'])


def _new_in_view(report: Mapping[str, Any]) -> Iterator[str]:
    """Say what a recogniser announced as new, and when."""
    new = (report.get('recognition') or {}).get('novelties', ())
    if not new:
        return
    shown = ', '.join(f'{one["label"]} ({one["at_s"]:.1f} s)' for one in new[:_MOST_NEW])
    more = f' and {len(new) - _MOST_NEW} more' if len(new) > _MOST_NEW else ''
    yield f'New in view, after none was there for a while: {shown}{more}.'


def _returns(returns: Mapping[str, Any]) -> Iterator[str]:
    """Say how many people came back, and whether under the id they had."""
    if count := returns['came_back']:
        yield (
            f'After at least {returns["away_s"]:.0f} s out of view people came back {count} '
            f'time{"" if count == 1 else "s"}, {returns["same_id"]} of them under their '
            'earlier id.'
        )


def people_words(glance: Mapping[str, Any]) -> Iterator[str]:
    """Say how many people there were and how they were followed, where that is known."""
    people = glance['people']
    if not people:
        yield 'Nobody came into view.'
    else:
        yield f'{_counted(people, "came")} into view{_followed(glance)}.'
    if others := glance['unmatched_ids']:
        yield f'{others} {"more track" if others == 1 else "more tracks"} matched nobody.'


def _followed(glance: Mapping[str, Any]) -> str:
    """Say how the people in view were followed, as the end of a sentence about them."""
    if glance['mostly_followed'] is None:
        return '; how long each was followed is not known'
    if not glance['matched_ids']:
        return '; nobody was followed'
    counts = [(glance[key], words) for key, words in _SHARES if glance[key]]
    (first, how), *rest = counts
    count = f'{first} {"was" if first == 1 else "were"}' if rest else 'all were'
    if glance['people'] == 1:
        count = 'this person was'
    others = ''.join(f', {number} {words}' for number, words in rest)
    return f'; {count} followed {how}{others}, under {_ids(glance["matched_ids"])}'


def _answers(report: Mapping[str, Any]) -> Iterator[str]:
    latency = report['latency_ms']['p50']
    if latency is None:
        return
    when = f'{_whole_ms(abs(latency))} {"before" if latency < 0 else "after"}'
    words = f'An answer came every {report["stride_ms"]:.0f} ms, typically {when} its window’s end'
    for modality, (name, _) in _UNITS.items():
        age = report['age_ms'][modality]['p50']
        if age is not None:
            words += f' and from a {name} {_whole_ms(age)} old'
            break
    error = report['accuracy'] and report['accuracy']['position_error_m']
    if error is not None:
        words += f'; positions were typically {error:.{2 if error < 1 else 1}f} m off'
    yield f'{words}.'


def _radar(report: Mapping[str, Any]) -> Iterator[str]:
    shares = [
        f'{100 * row["share"]:.0f} % at {row["from_m"]} to {row["to_m"]} m'
        for row in report['radar_detection']
    ]
    if shares:
        yield f'Of the people in the picture the radar saw within a second {", ".join(shares)}.'


def _counted(people: int, verb: str = '') -> str:
    if people == 1:
        return f'1 person {verb or "was"}'
    return f'{people} people {verb or "were"}'


def _ids(count: int) -> str:
    return '1 id' if count == 1 else f'{count} ids'


def _whole_ms(value: float) -> str:
    return f'{value:.0f} ms' if value >= 1.0 else 'less than 1 ms'


def limits(report: Mapping[str, Any]) -> list[Limit]:
    """List what a run had to do without, with what helps, from the content of report.json."""
    return [*_unit_limits(report), *_decision_limits(report)]


def _unit_limits(report: Mapping[str, Any]) -> Iterator[Limit]:
    for modality, (_, units) in _UNITS.items():
        counts = report['units'][modality]
        received = counts['received']
        if not received and f'the recording has no {modality}' in report['problems']:
            continue
        if not received:
            yield Limit(
                f'No {units} were received.',
                f'Name their topic with --{modality} if the recording has one.',
            )
            continue
        if counts['dropped'] > _WORTH_SAYING * received:
            share = _percent(counts['dropped'] / received)
            yield Limit(
                f'{share} of the {units} were dropped: encoding took too long.',
                _LIGHTER,
            )
        if counts['failed']:
            yield Limit(
                f'{counts["failed"]} of {received} {units} could not be decoded.',
                'What was wrong with them is listed under Input.',
            )
        if counts['lost']:
            yield Limit(
                f'{counts["lost"]} {units} got lost on the way to their encoder.',
                'Other work on this machine makes that more likely.',
            )


def _decision_limits(report: Mapping[str, Any]) -> Iterator[Limit]:
    decisions = report['decisions']
    if report['dropped']:
        yield Limit(
            f'{report["dropped"]} of {report["windows"]} windows brought no answer.',
            _LIGHTER,
        )
    missed = report['deadline_miss_rate'] or 0.0
    if missed > _WORTH_SAYING:
        yield Limit(
            f'{_percent(missed)} of the answers came after the deadline of '
            f'{report["deadline_ms"]:.0f} ms.',
            _LIGHTER,
        )
    for modality, count in report['decisions_with']['lost'].items():
        known = report['units'].get(modality, {}).get('received')
        silence = f'{modality}: nothing usable'  # said already, and when it was
        if any(problem.startswith(silence) for problem in report['problems']):
            continue
        if known and decisions and count > 5 * _WORTH_SAYING * decisions:
            yield Limit(
                f'{_percent(count / decisions)} of the windows held nothing of the {modality}.',
                'The sections on the input and on units say when it was silent.',
            )


def _percent(share: float) -> str:
    """Say a share; never all of them where a few are left, nor none."""
    return f'{min(max(100 * share, 1), 100 if share >= 1.0 else 99):.0f} %'
