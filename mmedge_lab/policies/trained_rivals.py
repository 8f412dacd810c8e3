"""The folder of trained rivals: their networks, made for one bundle's encoders.

``rivals.json`` names the files with their hashes, the bundle, the training, and results on unseen
flights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_cases import RATES
from mmedge_lab.policies.imputation import OUTPUTS, PERSON_FIELDS, TrainedImputer
from mmedge_lab.policies.policy_features import POLICY_FIELDS
from mmedge_lab.policies.steering import Plugins
from mmedge_lab.policies.trained_choosers import TrainedGate, TrainedSelector
from mmedge_ros.adaptation.bundle_configurations import bundle_space
from mmedge_ros.core.data_types import CAMERA, RADAR, Configuration
from mmedge_ros.core.untrusted_files import is_number, read_bounded, shown
from mmedge_ros.encoding.bundle.manifest import Manifest
from mmedge_ros.encoding.bundle.number_file import LARGEST_NUMBERS, number_bytes, read_numbers
from mmedge_ros.report.report_files import write_files
from mmedge_ros.windows.gate import DenseNetwork

FOLDER, INDEX = 'rivals', 'rivals.json'
GATING, SELECTION, IMPUTATION = 'modality_gating', 'model_selection', 'imputation'
# What each network is given, and what else of it is kept: shares from 0 to 1.
_FIELDS = {GATING: POLICY_FIELDS, SELECTION: POLICY_FIELDS, IMPUTATION: PERSON_FIELDS}
_NUMBERS = {GATING: ('threshold',), SELECTION: ('margin',), IMPUTATION: ('least', 'scale')}
_FORMAT = 1
_REMEDY = (
    'take the rivals of a shipped bundle; only imputation can be trained, '
    'train it again: mmedge lab train fit imputer'
)


class Choices(NamedTuple):
    """What can be chosen of a bundle: the camera's levels, and configurations at full rates.

    ``by_level`` has the highest level last; ``resting`` is that one at the camera's lowest rate.
    """

    levels: tuple[str, ...]
    by_level: tuple[Configuration, ...]
    resting: Configuration


class Rivals(NamedTuple):
    """Trained plug-ins, and a digest of their content."""

    plugins: Plugins
    digest: str


def choices_of(bundle: Path) -> Choices:
    """Return what rivals may choose.

    :raises EncodingError: if the bundle cannot be read
    """
    space = bundle_space(bundle, (CAMERA, RADAR), RATES)
    levels = next(options.levels for options in space.modalities if options.modality == CAMERA)
    full = space.parts(len(space) - 1)

    def with_camera(**changed: Any) -> Configuration:
        return Configuration(
            1, 0, tuple(replace(p, **changed) if p.modality == CAMERA else p for p in full)
        )

    return Choices(
        levels,
        tuple(with_camera(level=level) for level in levels),
        with_camera(rate=RATES[CAMERA][0]),
    )


def encoders_digest(bundle: Path) -> str:
    """Return a digest of a bundle's encoders: the rest of it may change.

    :raises EncodingError: if the manifest cannot be read
    """
    manifest, digest = Manifest(bundle), hashlib.sha256()
    for modality in (CAMERA, RADAR):
        if manifest.has(modality):
            for level, stages in manifest.levels(modality).stages.items():
                files = ' '.join(stage.sha256 for stage in stages)
                digest.update(f'{modality} {level} {files}\n'.encode())
    return digest.hexdigest()


def trained_gate(network: DenseNetwork, threshold: float, choices: Choices) -> TrainedGate:
    """Return the gate for a bundle."""
    return TrainedGate(network, threshold, choices.by_level[-1], choices.resting, choices.levels)


def write_rivals(
    folder: Path, bundle: Path, plugins: Plugins, facts: Mapping[str, Any] | None = None
) -> None:
    """Write trained rivals, as far as there are any; files of earlier ones are replaced.

    :param bundle: that they were trained for
    :param facts: more entries of the index, plain values
    :raises EvaluationError: if they cannot be written
    """
    files: dict[str, bytes] = {}
    entries: dict[str, Any] = {}
    for name, fields in _FIELDS.items():
        plugin = getattr(plugins, name)
        if not isinstance(plugin, TrainedGate | TrainedSelector | TrainedImputer):
            continue
        content = network_bytes(plugin.network, fields)
        files[f'{name}.npz'] = content
        entries[name] = {
            'file': f'{name}.npz',
            'sha256': hashlib.sha256(content).hexdigest(),
            **{key: np.round(getattr(plugin, key), 9).tolist() for key in _NUMBERS[name]},
        }
    index = {
        'format': _FORMAT,
        'bundle': Manifest(bundle).text('name'),
        'encoders': encoders_digest(bundle),
        'rivals': entries,
        **(facts or {}),
    }
    files[INDEX] = (json.dumps(index, indent=1, allow_nan=False) + '\n').encode()
    write_files(folder, files)


def read_rivals(folder: Path, bundle: Path) -> Rivals:
    """Read trained rivals.

    :raises EvaluationError: if there are none, they are damaged, or were trained for others
        than the bundle's encoders
    :raises EncodingError: if the bundle cannot be read
    """
    path = folder / INDEX
    content = read_bounded(path, LARGEST_NUMBERS, EvaluationError, _REMEDY)
    try:
        index = json.loads(content)
    except (ValueError, RecursionError) as err:
        raise EvaluationError(f'{path} is no JSON ({str(err)[:80]}); {_REMEDY}') from err
    entries = index.get('rivals') if isinstance(index, dict) else None
    if not isinstance(entries, dict) or index.get('format') != _FORMAT:
        raise EvaluationError(f'{path} lists no rivals of format {_FORMAT}; {_REMEDY}')
    if index.get('encoders') != encoders_digest(bundle):
        raise EvaluationError(
            f'{folder} was trained for other encoders ({shown(index.get("bundle"))}) than those '
            f'of {bundle.name}; {_REMEDY}'
        )
    choices = choices_of(bundle)
    outputs = {GATING: 1, SELECTION: len(choices.levels), IMPUTATION: OUTPUTS}
    known = {n: _read(folder, n, entries[n], outputs[n]) for n in outputs if n in entries}
    gate = selector = imputer = None
    if GATING in known:
        network, of = known[GATING]
        gate = trained_gate(network, of['threshold'], choices)
    if SELECTION in known:
        network, of = known[SELECTION]
        selector = TrainedSelector(network, of['margin'], choices.levels, choices.by_level)
    if IMPUTATION in known:
        network, of = known[IMPUTATION]
        imputer = TrainedImputer(network, np.array(of['scale'], float), of['least'])
    return Rivals(Plugins(gate, selector, imputer), hashlib.sha256(content).hexdigest())


def bundle_rivals(bundle: Path) -> Rivals:
    """Read the rivals that a bundle brings; none where it brings none.

    :raises EvaluationError: if they cannot be used
    """
    folder = bundle / FOLDER
    return read_rivals(folder, bundle) if (folder / INDEX).is_file() else Rivals(Plugins(), '')


def _read(
    folder: Path, name: str, entry: Any, outputs: int
) -> tuple[DenseNetwork, Mapping[str, Any]]:
    """Return the network of a rival and its checked entry in the index."""
    for key in _NUMBERS[name]:
        value = entry.get(key) if isinstance(entry, dict) else None
        several = value if isinstance(value, list) and len(value) == OUTPUTS - 1 else [None]
        shares = several if key == 'scale' else [value]
        if not all(is_number(share, 0.0, 1.0) for share in shares):
            raise EvaluationError(
                f'{folder / INDEX} has {name}.{key} {shown(value)}; it must be from 0 to 1; '
                f'{_REMEDY}'
            )
    # The name of the file is not taken from the index: it may lead anywhere.
    path = folder / f'{name}.npz'
    content = read_bounded(path, LARGEST_NUMBERS, EvaluationError, _REMEDY)
    if hashlib.sha256(content).hexdigest() != entry.get('sha256'):
        raise EvaluationError(f'{path} is not the file that {INDEX} names; {_REMEDY}')
    return network_from(content, _FIELDS[name], outputs, str(path)), entry


def network_bytes(network: DenseNetwork, fields: tuple[str, ...]) -> bytes:
    """Return the file of a network.

    :param fields: names of its inputs, in order
    """
    return number_bytes(vars(network), {'fields': fields})


def network_from(
    content: bytes, fields: tuple[str, ...], outputs: int, where: str
) -> DenseNetwork:
    """Return the network in a file.

    :param fields: names of the inputs that it will be given
    :param where: what the file is called in messages
    :raises EvaluationError: if it is none, or one for other fields or outputs
    """
    count = len(fields)
    shapes: dict[str, tuple[int | str, ...]] = {
        'mean': (count,),
        'scale': (count,),
        'weights1': (count, 'H'),
        'bias1': ('H',),
        'weights2': ('H', outputs),
        'bias2': (outputs,),
    }
    try:
        return DenseNetwork(**read_numbers(content, shapes, {'fields': fields}))
    except ValueError as err:
        raise EvaluationError(f'{where} is no network ({err}); {_REMEDY}') from err
