"""Turns the figures of an evaluation of every configuration into a bundle's accuracy table.

The value of a configuration is nine tenths of its streaming mean IoU and one tenth of the share
of people placed within 2 m, every configuration replayed with the same service times. Streaming
IoU counts the age of results, and so the worth of a rate; the time a level costs is left to the
latency model, or it would count twice. Places stand for the distances a radar adds, with a
weight too small to outweigh a visible difference of boxes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mmedge_lab.judging.bundle_cases import DECISION_FUSION
from mmedge_lab.judging.case_figures import OVERALL
from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.untrusted_files import shown

MEASURE = '0.9 streaming mean IoU + 0.1 people placed within 2 m, the same service times for all'
PLACES_WEIGHT = 0.1
_FIGURES = (('streaming_mean_iou', 1.0 - PLACES_WEIGHT), ('place_recall', PLACES_WEIGHT))
_LARGEST_REPORT = 50 << 20
# What reports call the only model of a modality.
_ANY = 'any'
_DIGITS = 4


def read_report(path: Path) -> Mapping[str, Any]:
    """Read the report.json of an evaluation of a bundle.

    :raises ConfigurationError: if it cannot be read, or has no configurations
    """
    try:
        if path.stat().st_size > _LARGEST_REPORT:
            raise ConfigurationError(f'{path} is too large for a report')
        report = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as err:
        raise ConfigurationError(
            f'{path} is no report: {err}; name report.json of `mmedge lab evaluate-bundle`'
        ) from err
    content: Mapping[str, Any] = report if isinstance(report, dict) else {}
    rows = content.get('configurations')
    if not isinstance(rows, list) or len(rows) < 2:
        raise ConfigurationError(
            f'{path} does not compare configurations; name the report.json of `mmedge '
            'evaluate-bundle` without --configurations full'
        )
    return content


def accuracy_entry(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest's entry: how it was measured, and a row for each configuration.

    :raises ConfigurationError: for a configuration without a figure
    """
    monotony = report.get('monotony') or {}
    steps = monotony.get('streaming_mean_iou') or {}
    flights = [str(name) for name in report.get('flights', ())]
    entry: dict[str, Any] = {
        'measure': MEASURE,
        'set': str(report.get('set', '')),
        'flights': flights,
        'seconds': report.get('seconds'),
        'service_times': str(report.get('profile', '')),
        'command': 'mmedge lab evaluate-bundle, then mmedge lab model accuracy',
        'steps': steps.get('steps'),
        'steps_down_beyond_noise': len(steps.get('falls', ())),
        'fusion_gain': _fusion_gain(report),
        'configurations': [_row(row) for row in report['configurations']],
    }
    return {key: value for key, value in entry.items() if value is not None}


def with_accuracy(
    manifest: str, report: Mapping[str, Any], facts: Mapping[str, Any] | None = None
) -> str:
    """Return the text of a manifest with the table of a report, in the place of an earlier one.

    :param facts: more entries of the table's, plain values

    :raises ConfigurationError: if the report is about another manifest, or lacks figures
    """
    plain = without_entry(manifest, 'accuracy')
    bundle = report.get('bundle')
    judged = bundle.get('sha256') if isinstance(bundle, dict) else None
    if judged not in {hashlib.sha256(text.encode()).hexdigest() for text in (manifest, plain)}:
        raise ConfigurationError(
            f'the report is about a manifest with SHA-256 {shown(judged)}, which is not this one; '
            'evaluate the bundle again'
        )
    entry = accuracy_entry(report) | dict(facts or {})
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


def _fusion_gain(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what fusion by networks adds to streaming IoU beside fusion by rules, if measured."""
    for row in report.get('differences', ()):
        wanted = (DECISION_FUSION.name, OVERALL.name, _FIGURES[0][0])
        if (row['against'], row['stratum'], row['figure']) == wanted:
            return {name: row[name] for name in ('value', 'low', 'high')}
    return None


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    parts = {}
    for modality in (CAMERA, RADAR):
        rate, level = row.get(f'{modality}_rate'), row.get(f'{modality}_level')
        if not isinstance(rate, int | float) or not isinstance(level, str):
            raise ConfigurationError(f'the report has no rate and level in {shown(row)}')
        parts[modality] = [rate] if level == _ANY else [rate, level]
    figures = {name: _value(row, name) for name, _ in _FIGURES}
    value = sum(weight * figures[name] for name, weight in _FIGURES)
    known = {name: round(figure, _DIGITS) for name, figure in figures.items()}
    return {**parts, 'value': round(value, _DIGITS), **known}


def _value(row: Mapping[str, Any], name: str) -> float:
    figure = row.get(name)
    value = figure.get('value') if isinstance(figure, dict) else None
    if not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise ConfigurationError(
            f'the report has no {name} of {row["camera_rate"]:g} Hz '
            f'{row["camera_level"]}: {shown(value)}'
        )
    return float(value)
