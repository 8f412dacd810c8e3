"""Files of measured results: reports of other commands, and the bundle's manifest.

The manifest's entry holds a record for each kind of result::

    measured:
      gate: {bundle: people, delta: 0.01, loss: [0.004, 0.001, 0.008], ...}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.measured_accuracy import without_entry
from mmedge_lab.rivals.comparison.measured_results import (
    KINDS,
    PREDICTOR,
    Result,
    kind_of,
    read_predictor,
)
from mmedge_lab.rivals.comparison.plain_fields import Fields, plain_record
from mmedge_ros.encoding.bundle.manifest import MANIFEST, Manifest
from mmedge_ros.report.report_files import REPORT, write_files
from mmedge_ros.untrusted_files import read_bounded

SECTION = 'measured'
_LARGEST = 50 << 20
_REMEDY = (
    'name the report.json, or the folder, that `mmedge lab train gate`, `ablations` or '
    '`predictor` wrote, or latency.json of `mmedge lab bench latency`'
)


def read_results(paths: Sequence[Path]) -> dict[str, Result]:
    """Read reports, each a file or a folder with a report.json; return their results by kind.

    :raises EvaluationError: if one cannot be read, is of no kind, or lacks a figure, or if two
        are of the same kind
    """
    results: dict[str, Result] = {}
    for path in paths:
        file = path / REPORT if path.is_dir() else path
        report = _content(file)
        kind = kind_of(report)
        if kind is None:
            raise EvaluationError(f'{file} is no measured result; {_REMEDY}')
        if kind in results:
            raise EvaluationError(f'{file} is a second result of {kind}; name one of them')
        results[kind] = KINDS[kind].read(Fields(str(file), report))
    return results


def bundle_results(bundle: Path) -> dict[str, Result]:
    """Read the results that a bundle's manifest brings; {} where it brings none.

    :raises EncodingError: if the manifest cannot be read
    :raises EvaluationError: if a result in it cannot
    """
    manifest = Manifest(bundle)
    results: dict[str, Result] = {}
    if manifest.has(PREDICTOR):  # it stands there with its own figures
        where = f'{manifest.path}: {PREDICTOR}'
        results[PREDICTOR] = read_predictor(Fields(where, manifest.section(PREDICTOR)))
    if not manifest.has(SECTION):
        return results
    section = Fields(f'{manifest.path}: {SECTION}', manifest.section(SECTION))
    return results | {
        name: section.part(name).record(kind.record)
        for name, kind in KINDS.items()
        if name in section.values
    }


def enter_results(bundle: Path, results: Mapping[str, Result]) -> None:
    """Write results into a bundle's manifest; those of other kinds that are there stay.

    The rest of the manifest keeps its bytes.

    :raises EncodingError: if the manifest cannot be read
    :raises EvaluationError: if it cannot be written
    """
    manifest = Manifest(bundle)
    path = manifest.path
    known = bundle_results(bundle) | dict(results)
    if manifest.has(PREDICTOR) and PREDICTOR not in results:
        del known[PREDICTOR]  # its own section says so already
    entry = {SECTION: {name: plain_record(result) for name, result in known.items()}}
    text = yaml.safe_dump(entry, sort_keys=False, width=90, allow_unicode=True)
    write_files(bundle, {MANIFEST: (without_entry(path.read_text(), SECTION) + text).encode()})


def _content(path: Path) -> Mapping[str, Any]:
    raw = read_bounded(path, _LARGEST, EvaluationError, _REMEDY)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as err:
        raise EvaluationError(f'{path} is no JSON ({str(err)[:80]}); {_REMEDY}') from err
    if not isinstance(content, dict):
        raise EvaluationError(f'{path} is no measured result; {_REMEDY}')
    return content
