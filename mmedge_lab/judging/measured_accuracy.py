"""Turns the figures of an evaluation of every configuration into a bundle's accuracy table.

The value of a configuration is nine tenths of its streaming mean IoU and one tenth of the share
of people placed within 2 m, every configuration replayed with the same service times. Streaming
IoU counts the age of results, and so the worth of a rate; the time a level costs is left to the
latency model, or it would count twice. Places stand for the distances a radar adds, with a
weight too small to outweigh a visible difference of boxes.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mmedge_lab.judging.bundle_cases import ANY, DECISION_FUSION, FUSION, case_named
from mmedge_lab.judging.bundle_evaluation import CONFIGURATIONS, NAME
from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.untrusted_files import shown
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.report.report_files import write_files

MEASURE = '0.9 streaming mean IoU + 0.1 people placed within 2 m, the same service times for all'
PLACES_WEIGHT = 0.1
_FIGURES = (('streaming_mean_iou', 1.0 - PLACES_WEIGHT), ('place_recall', PLACES_WEIGHT))
_DIGITS = 4


def accuracy_entry(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest's entry: how it was measured, and a row for each configuration.

    :raises ConfigurationError: for a configuration without a figure
    """
    evaluated = report['evaluated']
    entry: dict[str, Any] = {
        'measure': MEASURE,
        'set': str(evaluated.get('set', '')),
        'flights': [str(name) for name in evaluated.get('flights', ())],
        'seconds': evaluated.get('seconds'),
        'service_times': str(evaluated.get('service_times', '')),
        'command': f'mmedge lab {NAME} --enter',
        'fusion_gain': _fusion_gain(report),
        'configurations': [_row(row) for row in _configurations(report)],
    }
    return {key: value for key, value in entry.items() if value is not None}


def enter_accuracy(bundle: Path, report: Mapping[str, Any]) -> None:
    """Enter the accuracies of a report of `mmedge lab evaluate-bundle` into a bundle's manifest.

    :raises ConfigurationError: if the report is about another bundle, or lacks figures
    :raises ReportError: if the manifest cannot be written
    """
    text = with_accuracy((bundle / MANIFEST).read_text(encoding='utf-8'), report)
    write_files(bundle, {MANIFEST: text.encode()})


def with_accuracy(manifest: str, report: Mapping[str, Any]) -> str:
    """Return the text of a manifest with the table of a report, in the place of an earlier one.

    :raises ConfigurationError: if the report is about another manifest, or lacks figures
    """
    plain = without_entry(manifest, 'accuracy')
    judged = report['evaluated'].get('manifest')
    if judged not in {hashlib.sha256(text.encode()).hexdigest() for text in (manifest, plain)}:
        raise ConfigurationError(
            f'the report is about a manifest with SHA-256 {shown(judged)}, which is not this one; '
            'evaluate the bundle again'
        )
    entry = accuracy_entry(report)
    rows = entry.pop('configurations')
    head = yaml.safe_dump(entry, sort_keys=False, width=90, default_flow_style=None)
    lines = [f'  {line}' for line in head.splitlines()]
    lines.append('  configurations:')
    lines += [f'  - {_in_a_line(row)}' for row in rows]
    return plain + 'accuracy:\n' + '\n'.join(lines) + '\n'


def _in_a_line(row: Mapping[str, Any]) -> str:
    return yaml.safe_dump(row, sort_keys=False, width=math.inf, default_flow_style=True).strip()


def without_entry(manifest: str, name: str) -> str:
    """Leave out an entry and what is indented below it, and nothing else."""
    entry = rf'^{re.escape(name)}:.*\n(?:[ \t].*\n|\n)*'
    plain = re.sub(entry, '', manifest, flags=re.MULTILINE)
    return plain if plain.endswith('\n') else plain + '\n'


def _rows(report: Mapping[str, Any], title: str) -> Sequence[Mapping[str, Any]]:
    try:
        tables = [table for table in report['tables'] if table['title'] == title]
        return [row for table in tables for row in table['rows'] if isinstance(row['name'], str)]
    except (KeyError, TypeError) as err:
        raise ConfigurationError(
            f'the table cannot be read ({err}); make it anew: mmedge lab {NAME}'
        ) from err


def _configurations(report: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return _rows(report, CONFIGURATIONS) if 'tables' in report else ()


def _fusion_gain(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what fusion by networks adds to streaming IoU beside fusion by rules, if measured."""
    for row in _rows(report, ''):
        against = row.get('against', {}).get(DECISION_FUSION.name)
        if row['name'] == FUSION.name and against:
            return dict(against[_FIGURES[0][0]])
    return None


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    case = case_named(row['name'])
    if case is None:
        raise ConfigurationError(f'the table has no rate and level in {shown(row["name"])}')
    figures = {name: _value(row, name) for name, _ in _FIGURES}
    value = sum(weight * figures[name] for name, weight in _FIGURES)
    known = {name: round(figure, _DIGITS) for name, figure in figures.items()}
    return {
        CAMERA: _rate_and_level(case.camera_rate, case.camera_level),
        RADAR: _rate_and_level(case.radar_rate, case.radar_level),
        'value': round(value, _DIGITS),
        **known,
    }


def _rate_and_level(rate: float, level: str) -> list[float | str]:
    return [rate] if level == ANY else [rate, level]


def _value(row: Mapping[str, Any], name: str) -> float:
    figure = row.get('values', {}).get(name)
    value = figure.get('value') if isinstance(figure, dict) else None
    if not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise ConfigurationError(f'the table has no {name} of {row["name"]}: {shown(value)}')
    return float(value)
