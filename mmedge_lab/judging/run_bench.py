"""Judges the rows of a bench on its subjects; what was judged before is kept."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, Results, Row, Subject, Sums, UnmeasuredError
from mmedge_lab.judging.bundle_under_test import flight_digest, software_digest
from mmedge_lab.judging.flight_workers import OnProgress, do_flight_works
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

    :param folder: of what was judged before; a bench without a key keeps nothing
    :param jobs: processes, each with one subject at a time; 0 for one per processor
    :param on_progress: called with the share done (0..1) and the number of whole subjects
    :raises EvaluationError: if a subject cannot be judged
    """
    if not bench.key:
        with tempfile.TemporaryDirectory() as temporary:
            return _judged(bench, Path(temporary), 1, on_progress)
    return _judged(bench, folder, jobs, on_progress)


def _judged(bench: Bench, folder: Path, jobs: int, on_progress: OnProgress | None) -> Judged:
    keys = [row.key for row in bench.rows]
    tasks = [_SubjectTask(s, bench.rows, bench.open, bench.key, folder) for s in bench.subjects]
    works = {task.subject.name: task.judge for task in tasks if not task.kept().keys() >= {*keys}}
    do_flight_works(works, jobs, on_progress, EvaluationError, len(tasks) - len(works))
    every = [task.kept() for task in tasks]
    why = {key: str(of[key][_WHY]) for of in every for key in keys if _WHY in of[key]}
    results = {key: [{} if key in why else of[key] for of in every] for key in keys}
    return Judged(results, why)


class _SubjectTask(NamedTuple):
    """The rows to judge on one subject."""

    subject: Subject
    rows: Sequence[Row]
    open: Callable[[Subject, Sequence[Row], OnShare], Any]
    about: str
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / f'{self.subject.name}.json'

    def key(self) -> str:
        """Return what the sums depend on."""
        path = self.subject.path
        digest = flight_digest(path) if path and path.is_dir() else str(path)
        text = f'{self.about} {software_digest()} {digest}'
        return hashlib.sha256(text.encode()).hexdigest()

    def kept(self) -> dict[str, Any]:
        """Return the sums that are known, by the keys of rows."""
        try:
            content = json.loads(kept_content(self.path) or b'{}')
            return dict(content['rows']) if content['key'] == self.key() else {}
        except (ValueError, KeyError, TypeError):
            return {}

    def judge(self, on_share: OnShare) -> None:
        """Judge the rows that are missing, and keep each as it is there."""
        known = self.kept()
        missing = [row for row in self.rows if row.key not in known]
        opened = self.open(self.subject, missing, lambda s: on_share(_OPENING_SHARE * s))
        for number, row in enumerate(missing, 1):
            known[row.key] = _sums(row, opened)
            text = json.dumps({'key': self.key(), 'rows': known})
            write_files(self.folder, {self.path.name: text.encode()})
            on_share(_OPENING_SHARE + (1.0 - _OPENING_SHARE) * number / len(missing))


def _sums(row: Row, opened: Any) -> dict[str, Any]:
    try:
        sums: Sums = row.judge(opened)
    except UnmeasuredError as err:
        return {_WHY: str(err)}
    return {column: np.asarray(value, float).tolist() for column, value in sums.items()}
