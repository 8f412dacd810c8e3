"""The regression check: figures that are kept, and what changed against them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.comparison.report import figure_of, named_case
from mmedge_ros.report.page import markdown_table
from mmedge_ros.report.report_files import write_files

_LARGEST = 1_000_000
# What is kept of each case, and how far it may move: networks differ by a few thousandths
# between processors, times come from a profile and hardly move.
KEPT: Mapping[str, float] = {
    'accuracy.streaming_mean_iou': 0.02,
    'accuracy.mean_iou': 0.02,
    'accuracy.recall': 0.03,
    'accuracy.precision': 0.03,
    'tracking.idf1': 0.05,
    'latency_ms.p50': 1.0,
    'latency_ms.p95': 3.0,
    'age_ms.camera.p50': 3.0,
    'deadline_miss_rate': 0.03,
    'dropped_share': 0.03,
    'encoder_calls_per_s.camera': 0.5,
    'encoder_calls_per_s.radar': 0.5,
    'cpu_s_per_s': 0.02,
}


class Change(NamedTuple):
    """A figure beside what it was; None where it is missing now or was missing then."""

    case: str
    figure: str
    kept: float | None
    tolerance: float
    now: float | None

    @property
    def within(self) -> bool:
        """Whether it moved by no more than is allowed."""
        if self.kept is None or self.now is None:
            return self.kept is self.now
        return abs(self.now - self.kept) <= self.tolerance


def write_kept(report: Mapping[str, Any], path: Path) -> None:
    """Write a file of figures, with the tolerances that usually do.

    :raises EvaluationError: if it cannot be written
    """
    kept = {
        **_identity(report),
        'cases': {
            named_case(row).key: {
                name: {'value': figure_of(row, name)['value'], 'tolerance': tolerance}
                for name, tolerance in KEPT.items()
            }
            for row in report['cases']
        },
    }
    write_files(path.parent, {path.name: (json.dumps(kept, indent=1) + '\n').encode()})


def _identity(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be the same for figures to be comparable."""
    return {
        'flights': list(report['flights']),
        'bundle_sha256': report['bundle']['sha256'],
        'profile': report['profile'],
    }


def changes(report: Mapping[str, Any], path: Path) -> list[Change]:
    """Put a report beside kept figures; every kept one, in their order.

    :raises EvaluationError: if the file is none of figures, or is of other flights, another
        bundle or another profile
    """
    kept = _read(path)
    for name, now in _identity(report).items():
        if kept.get(name) != now:
            raise EvaluationError(
                f'{path} was made with other {name.replace("_sha256", "")}: it says '
                f'{str(kept.get(name))[:120]}, this run {str(now)[:120]}; compare like with like, '
                'or write it anew with --store'
            )
    rows = {named_case(row).key: row for row in report['cases']}
    return [
        Change(key, name, *_entry(path, key, name, entry), _now(rows.get(key), name))
        for key, figures in kept['cases'].items()
        for name, entry in figures.items()
    ]


def change_table(moved: Sequence[Change]) -> str:
    """Write a table of changes."""

    def words(value: float | None) -> str:
        return 'missing' if value is None else f'{value:.4g}'

    rows = []
    for change in moved:
        by = ''
        if change.kept is not None and change.now is not None:
            by = f'{change.now - change.kept:+.4g}'
        allowed = f'{change.tolerance:g}'
        rows.append(
            [change.case, change.figure, words(change.kept), words(change.now), by, allowed]
        )
    return markdown_table(['case', 'figure', 'kept', 'now', 'by', 'allowed'], rows)


def _now(row: Mapping[str, Any] | None, name: str) -> float | None:
    try:
        return None if row is None else figure_of(row, name)['value']
    except (KeyError, TypeError, ValueError):
        return None


def _entry(path: Path, key: str, name: str, entry: Any) -> tuple[float | None, float]:
    if isinstance(entry, dict):
        value, tolerance = entry.get('value'), entry.get('tolerance')
        fits = value is None or _is_number(value)
        if fits and _is_number(tolerance) and 0.0 <= tolerance < math.inf:
            return value, float(tolerance)
    raise EvaluationError(
        f'{path}: {key}, {name} is {str(entry)[:80]}; it needs a value and a tolerance, write the '
        'file anew with --store'
    )


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST:
            raise EvaluationError(f'{path} is too large for a file of figures')
        content = json.loads(path.read_bytes())
    except OSError as err:
        raise EvaluationError(f'{path} cannot be read: {err.strerror or err}') from err
    except (ValueError, RecursionError) as err:
        raise EvaluationError(f'{path} is no JSON: {err}') from err
    cases = content.get('cases') if isinstance(content, dict) else None
    if not isinstance(cases, dict) or not all(isinstance(f, dict) for f in cases.values()):
        raise EvaluationError(
            f'{path} holds no figures to compare with; write such a file with --store'
        )
    return dict(content)
