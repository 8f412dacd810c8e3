"""How many questions about flights are answered rightly, from flights to a folder with a report.

Beside our tracks, true ones are put in their place, so that what reading and answering cost is
known apart from what was perceived.
"""

from __future__ import annotations

import json
import resource
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_report import plain
from mmedge_lab.judging.bundle_under_test import flight_digest, software_digest
from mmedge_lab.judging.flight_bootstrap import (
    CONFIDENCE,
    RESAMPLES,
    Drawings,
    Estimate,
    flight_seeds,
    interval,
)
from mmedge_lab.judging.flight_workers import OnProgress, work_through
from mmedge_lab.judging.question_maker import true_questions
from mmedge_lab.judging.question_truth import (
    Expected,
    Sort,
    is_right,
    known_when,
    owners_of,
    track_of,
    true_observations,
)
from mmedge_lab.judging.simulated_flight import simulated_flight
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.questions.answering import KnownFlight, ask
from mmedge_ros.questions.observed_flight import observe_flight
from mmedge_ros.questions.question import Kind
from mmedge_ros.records.run_record import software_identity
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.report_files import (
    arrays_bytes,
    kept_content,
    read_arrays,
    write_files,
    write_report,
)

# Questions of each kind about each flight.
EACH = 5
_FEW_SEEDS = 10
# What is promised: so many questions, and so many answered rightly with true tracks.
_LEAST_QUESTIONS, _LEAST_TRUE = 200, 0.98
_DECIDING = (
    *('questions', 'memory', 'encoding', 'pipeline', 'replay', 'tracking', 'fusion'),
    'sensing',
    *(f'lab/evaluation/question_{name}.py' for name in ('maker', 'truth', 'accuracy')),
)


@dataclass(frozen=True)
class QuestionTask:
    """A flight to ask about, tracked with a bundle; ``profile`` '': service times are measured."""

    name: str
    flight: Path
    bundle: Path
    profile: str
    folder: Path
    key: str

    def pending(self) -> tuple[str, ...]:
        """Return what has no result yet."""
        return () if self.rows() is not None else (self.name,)

    def rows(self) -> list[dict[str, Any]] | None:
        """Return the questions with what was answered; None: nothing yet."""
        content = kept_content(self._file)
        arrays = None if content is None else read_arrays(content, self.key)
        return None if arrays is None else [json.loads(str(row)) for row in arrays['rows']]

    def keep(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write what was answered.

        :raises ReportError: if that is not possible
        """
        texts = np.array([json.dumps(row) for row in rows], np.str_)
        write_files(self._file.parent, {self._file.name: arrays_bytes(self.key, rows=texts)})

    @property
    def _file(self) -> Path:
        return self.folder / 'flights' / self.name / 'answers.npz'


@dataclass(frozen=True)
class QuestionRequest:
    """What to judge; ``profile`` '': service times are measured, ``jobs`` 0: one per processor."""

    bundle: Path
    sets: tuple[str, ...]
    flights: tuple[tuple[str, Path], ...]
    out: Path
    profile: str = ''
    jobs: int = 1
    command: str = ''


def evaluate_questions(
    request: QuestionRequest, on_progress: OnProgress | None = None
) -> dict[str, Any]:
    """Ask about flights, and write the report; returns its content.

    What was answered before about the same flights, with the same bundle and software, is kept.

    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if flights are none that can be judged
    :raises ReportError: if the report cannot be written
    :raises ReplayError: if a flight cannot be read
    """
    begun = time.process_time()
    tasks = question_tasks(request.flights, request.bundle, request.profile, request.out)
    work_through(tasks, answer_flight, request.jobs, on_progress)
    rows = [task.rows() or [] for task in tasks]
    if not any(rows):
        raise EvaluationError('nothing can be asked about these flights; take longer ones')
    drawings = Drawings.of(flight_seeds([task.flight for task in tasks]))
    report = {
        'sets': list(request.sets),
        'command': request.command,
        'profile': Path(request.profile).name,
        'software': software_identity(request.bundle),
        'flights': [task.name for task in tasks],
        'bootstrap': {
            'unit': 'seed',
            'seeds': len(np.unique(drawings.seeds)),
            'resamples': RESAMPLES,
            'confidence': CONFIDENCE,
        },
        **judged(rows, drawings),
    }
    seeds = report['bootstrap']['seeds']
    few = f'only {seeds} seeds of flights: intervals over so few are too narrow'
    report['problems'] = [few] if seeds < _FEW_SEEDS else []
    report['resources'] = {
        'cpu_s': time.process_time() - begun,
        'peak_rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }
    write_report(report, request.out, {}, (), ())
    return report


def question_tasks(
    flights: Sequence[tuple[str, Path]], bundle: Path, profile: str, folder: Path
) -> list[QuestionTask]:
    """Return the tasks of flights, given by name.

    :raises EncodingError: if a file cannot be read
    """
    made = sha256_of(bundle / MANIFEST) + software_digest()
    made += sha256_of(Path(profile)) if profile else ''
    return [
        QuestionTask(
            name, flight, bundle, profile, folder, f'{made} {flight_digest(flight)} {EACH}'
        )
        for name, flight in flights
    ]


def answer_flight(task: QuestionTask, on_share: OnShare) -> None:
    """Replay a flight, and ask about it with our tracks and with true ones.

    :raises EvaluationError: if it is no simulated flight with truth
    """
    simulated_flight(task.flight)
    seen = observe_flight(
        str(task.flight), str(task.bundle), lambda share, _: on_share(0.95 * share), task.profile
    )
    with Recording(task.flight) as recording:
        truth = recording.truth()
    if truth is None or not truth.scenes:
        raise EvaluationError(f'{task.flight} has no ground truth; name simulated flights')
    true = true_observations(truth, seen.observations.stamps_ns)
    owners = owners_of(seen.observations, true)
    ours = KnownFlight(seen.observations, labels=seen.labels)
    perfect = KnownFlight(true, labels=seen.labels, is_exact=True)
    rows = []
    for question in true_questions(true, known_when(ours.observations, owners), task.name, EACH):
        tracks = [track_of(ours.observations, owners, question, one) for one in question.objects]
        answered = ask(question.text.format(*tracks), ours)
        by_truth = ask(question.text.format(*question.objects), perfect)
        sort, value, within = question.expected
        rows.append(
            {
                'kind': question.kind.value,
                'form': question.form,
                'question': question.text.format(*tracks),
                'objects': list(question.objects),
                'sort': sort.value,
                'expected': value,
                'within': within,
                'ours': is_right(question.expected, answered.value, owners),
                'true': is_right(question.expected, by_truth.value),
                'answer': answered.text,
                'answer_by_truth': by_truth.text,
                'is_refused': bool(answered.refused),
            }
        )
    task.keep(rows)


def judged(rows: Sequence[Sequence[dict[str, Any]]], drawings: Drawings) -> dict[str, Any]:
    """Return figures by kind and of all, with verdicts.

    :param rows: those of each flight
    """
    usual = _usually_right([row for of in rows for row in of])
    judge = _Judge(rows, usual, drawings)
    kinds = {kind.value: judge.figures(kind.value) for kind in Kind}
    whole = judge.figures('')
    verdicts = [
        _verdict('at least 200 questions', {'value': whole['questions']}, _LEAST_QUESTIONS),
        _verdict('true tracks: at least 0.98 right', whole['true'], _LEAST_TRUE),
    ]
    for kind, figures in kinds.items():
        gain = figures['ours_minus_usual']
        above = {**gain, 'value': gain['low']}
        verdicts.append(
            {
                **_verdict(f'{kind}: above the usual answer', above, 0.0),
                'found': gain,
                'verdict': 'met' if (gain['low'] or 0.0) > 0.0 else 'missed',
            }
        )
    return {'all': whole, 'kinds': kinds, 'verdicts': verdicts}


class _Judge:
    """Sums of flights, and how far they may be from those of other seeds."""

    def __init__(
        self,
        rows: Sequence[Sequence[dict[str, Any]]],
        usual: dict[int, bool],
        drawings: Drawings,
    ) -> None:
        self._rows, self._usual, self._drawings = rows, usual, drawings

    def figures(self, kind: str) -> dict[str, Any]:
        """Return how many were answered rightly; '' is all kinds."""
        of = [[row for row in rows if row['kind'] == kind or not kind] for rows in self._rows]
        asked = np.array([len(rows) for rows in of], float)
        ours, true, usual, refused = (
            np.array([sum(map(count, rows)) for rows in of], float)
            for count in (
                lambda row: row['ours'],
                lambda row: row['true'],
                lambda row: self._usual[id(row)],
                lambda row: row['is_refused'],
            )
        )
        return {
            'questions': int(asked.sum()),
            'ours': plain(self._share(ours, asked)),
            'true': plain(self._share(true, asked)),
            'usual': plain(self._share(usual, asked)),
            'refused': plain(self._share(refused, asked)),
            'ours_minus_usual': plain(self._share(ours - usual, asked)),
            'forms': _by_form([row for rows in of for row in rows], self._usual),
        }

    def _share(self, above: FloatArray, below: FloatArray) -> Estimate:
        with np.errstate(invalid='ignore', divide='ignore'):
            drawn = (self._drawings.weights @ above) / (self._drawings.weights @ below)
        total = float(below.sum())
        value = float(above.sum()) / total if total else float('nan')
        return Estimate(value, *interval(drawn, self._drawings.count(below > 0.0)))


class _Usual(NamedTuple):
    """What can be the usual answer to questions of one form, as text, and how many it fits."""

    answer: str
    fits: tuple[bool, ...]


def _usually_right(rows: Sequence[dict[str, Any]]) -> dict[int, bool]:
    """Say of each question, by its identity, whether the answer that fits most of its form does.

    Of two tracks that are named, that is the first or the second one.
    """
    forms: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        forms[row['kind'], row['form']].append(row)
    right: dict[int, bool] = {}
    for of in forms.values():
        candidates = {json.dumps(_constant(row)): _constant(row) for row in of}
        best = max(
            (
                _Usual(text, tuple(_fits(row, candidate) for row in of))
                for text, candidate in candidates.items()
            ),
            key=lambda usual: (sum(usual.fits), usual.answer),
        )
        right |= {id(row): fits for row, fits in zip(of, best.fits, strict=True)}
    return right


def _constant(row: dict[str, Any]) -> Any:
    """Return an answer such as could be given to every question of its form."""
    if row['sort'] == Sort.OBJECT.value and row['expected'] in row['objects']:
        return row['objects'].index(row['expected'])
    return row['expected']


def _fits(row: dict[str, Any], constant: Any) -> bool:
    sort = Sort(row['sort'])
    if sort is Sort.OBJECT:
        # Numbers of tracks mean nothing in another flight.
        return bool(row['objects']) and _constant(row) == constant
    if sort in (Sort.OBJECTS, Sort.PLACE):
        constant = tuple(constant)
    return is_right(Expected(sort, row['expected'], row['within']), constant)


def _by_form(rows: Sequence[dict[str, Any]], usual: dict[int, bool]) -> dict[str, Any]:
    forms: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        forms[f'{row["kind"]}: {row["form"]}'].append(row)
    return {
        form: {
            'questions': len(of),
            'ours': float(np.mean([row['ours'] for row in of])),
            'true': float(np.mean([row['true'] for row in of])),
            'usual': float(np.mean([usual[id(row)] for row in of])),
        }
        for form, of in forms.items()
    }


def _verdict(target: str, found: dict[str, Any], least: float) -> dict[str, Any]:
    return {
        'target': target,
        'found': found,
        'least': least,
        'verdict': 'met' if (found['value'] or 0.0) >= least else 'missed',
    }
