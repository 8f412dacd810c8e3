"""Which parts of a bundle were fitted to the encoders it holds, by a digest that each part keeps.

A part is what was learned or measured with trained encoders; other encoders make it stale.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.measured_accuracy import with_accuracy
from mmedge_lab.policies.trained_rivals import FOLDER, INDEX, encoders_digest
from mmedge_lab.training import TrainingError
from mmedge_ros.core.untrusted_files import PlainYamlError, load_plain_yaml, read_bounded
from mmedge_ros.encoding.bundle.manifest import MANIFEST, Manifest
from mmedge_ros.report.report_files import write_files
from mmedge_ros.tracking.noise_scale import NOISE_FILE

# The entry of a part that holds the digest of the encoders.
ENCODERS = 'encoders'
FUSION, NOISE, ACCURACY, PREDICTOR = 'fusion', 'noise', 'accuracy', 'predictor'
GATE, RIVALS = 'gate', 'rivals'
_LARGEST = 1 << 20


class Fit(Enum):
    """To which encoders a part was fitted."""

    FITTED = 'fitted to these encoders'
    STALE = 'stale: fitted to other encoders'
    UNKNOWN = 'not said to which encoders it was fitted'


def fitted_parts(bundle: Path) -> dict[str, Fit]:
    """Return the parts that a bundle has, and to which encoders each was fitted.

    :raises EncodingError: if the manifest cannot be read
    :raises TrainingError: if a part cannot
    """
    encoders = encoders_digest(bundle)
    return {name: _fit(digest, encoders) for name, digest in _digests(bundle).items()}


def enter_accuracy(bundle: Path, report: Mapping[str, Any]) -> None:
    """Enter the accuracies of a report of `mmedge lab evaluate-bundle` into the bundle's manifest.

    :raises ConfigurationError: if the report is about another bundle, or lacks figures
    :raises ReportError: if the manifest cannot be written
    """
    text = (bundle / MANIFEST).read_text(encoding='utf-8')
    text = with_accuracy(text, report, {ENCODERS: encoders_digest(bundle)})
    write_files(bundle, {MANIFEST: text.encode()})


def _fit(digest: Any, encoders: str) -> Fit:
    if not isinstance(digest, str):
        return Fit.UNKNOWN
    return Fit.FITTED if digest == encoders else Fit.STALE


def _digests(bundle: Path) -> dict[str, Any]:
    manifest = Manifest(bundle)
    digests: dict[str, Any] = {}
    if manifest.has(FUSION):
        training = manifest.content.get('training')
        digests[FUSION] = training.get(ENCODERS) if isinstance(training, dict) else None
    for name in (ACCURACY, PREDICTOR, GATE):
        if manifest.has(name):
            digests[name] = manifest.section(name).get(ENCODERS)
    try:
        if (bundle / NOISE_FILE).is_file():
            digests[NOISE] = load_plain_yaml(bundle / NOISE_FILE, _LARGEST).get(ENCODERS)
        path = bundle / FOLDER / INDEX
        if path.is_file():
            index = json.loads(read_bounded(path, _LARGEST, EvaluationError, 'train them anew'))
            digests[RIVALS] = index.get(ENCODERS) if isinstance(index, dict) else None
    except (PlainYamlError, EvaluationError, ValueError, RecursionError) as err:
        raise TrainingError(f'a part of {bundle} cannot be read: {err}') from err
    return digests
