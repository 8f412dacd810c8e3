"""Judges the rows of a bench on its subjects; what was judged before is kept."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.flight_workers import OnProgress, do_flight_works
from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, Results, Row, Subject, Sums, UnmeasuredError
from mmedge_lab.judging.bundle_under_test import flight_digest, software_digest
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.report.report_files import kept_content, write_files

JUDGED = 'judged'
# Of the work on a subject; a guess that only the progress depends on.
_OPENING_SHARE = 0.3
# Why a row is not measured stands here in place of its sums.
_WHY = 'unmeasured'


class Judged(NamedTuple):
    """Sums of each subject by the keys of rows, and why a row has none."""

    results: Results
    unmeasured: dict[str, str]


def judge(
    bench: Bench, folder: Path, jobs: int = 1, on_progress: OnProgress | None = None
) -> Judged:
    """Judge every row on every subject.

    :param folder: of what was judged before
    :param jobs: processes, each with one subject at a time; 0 for one per processor
    :param on_progress: called with the share done (0..1) and the number of whole subjects
    :raises EvaluationError: if a subject cannot be judged, or two have one name
    """
    known: dict[str, Subject] = {}
    for subject in bench.subjects:
        other = known.setdefault(subject.name, subject)
        if other is not subject:
            raise EvaluationError(
                f'{other.path} and {subject.path} have one name, by which flights are known; '
                'judge them in runs of their own, or rename one'
            )
    with tempfile.TemporaryDirectory() as temporary:
        # What measures the machine is judged anew each time, by one process.
        into, processes = (folder, jobs) if bench.key else (Path(temporary), 1)
        tasks = [
            _SubjectTask(s, bench.rows, bench.open, _depends_on(bench.key, s), into)
            for s in bench.subjects
        ]
        works = {task.subject.name: task.judge for task in tasks if task.missing(task.kept())}
        do_flight_works(works, processes, on_progress, EvaluationError, len(tasks) - len(works))
        every = [task.kept() for task in tasks]
    keys = [row.key for row in bench.rows]
    why = {key: str(of[key][_WHY]) for of in every for key in keys if _WHY in of[key]}
    results = {key: [{} if key in why else of[key] for of in every] for key in keys}
    return Judged(results, why)


def _depends_on(about: str, subject: Subject) -> str:
    """Return what the sums of a subject depend on; '' where nothing is kept.

    All of its flight is read for that.
    """
    if not about:
        return ''
    path = subject.path
    digest = flight_digest(path) if path and path.is_dir() else str(path)
    return hashlib.sha256(f'{about} {software_digest()} {digest}'.encode()).hexdigest()


class _SubjectTask(NamedTuple):
    """The rows to judge on one subject."""

    subject: Subject
    rows: Sequence[Row]
    open: Callable[[Subject, Sequence[Row], OnShare], Any]
    key: str
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / f'{self.subject.name}.json'

    def kept(self) -> dict[str, Any]:
        """Return the sums that are known, by the keys of rows."""
        try:
            content = json.loads(kept_content(self.path) or b'{}')
            return dict(content['rows']) if content['key'] == self.key else {}
        except (ValueError, KeyError, TypeError):
            return {}

    def missing(self, known: dict[str, Any]) -> list[Row]:
        """Return the rows to judge; what could not be measured is tried again."""
        return [row for row in self.rows if _WHY in known.get(row.key, (_WHY,))]

    def judge(self, on_share: OnShare) -> None:
        """Judge the rows that are missing, and keep each as it is there."""
        known = self.kept()
        missing = self.missing(known)
        opened = self.open(self.subject, missing, lambda s: on_share(_OPENING_SHARE * s))
        for number, row in enumerate(missing, 1):
            known[row.key] = _sums(row, opened)
            text = json.dumps({'key': self.key, 'rows': known})
            write_files(self.folder, {self.path.name: text.encode()})
            on_share(_OPENING_SHARE + (1.0 - _OPENING_SHARE) * number / len(missing))


def _sums(row: Row, opened: Any) -> dict[str, Any]:
    try:
        sums: Sums = row.judge(opened)
    except UnmeasuredError as err:
        return {_WHY: str(err)}
    return {column: np.asarray(value, float).tolist() for column, value in sums.items()}
