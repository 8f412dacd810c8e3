"""Which network is used when none is named, and what a name stands for.

A detector trained on the simulator is right for simulated flights and poor at real people, and
the other way round; so what the pictures come from decides which one goes first.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import SIMULATED, load_bundle
from mmedge_ros.encoding.bundle.registry import KNOWN_MODELS
from mmedge_ros.encoding.bundle.weights import fetched_models_folder

_SHARED = Path('share') / 'mmedge_ros' / 'models'
# Beside the sources, and where pip installs them.
_SHIPPED = (Path(__file__).resolve().parents[3] / 'models', Path(sys.prefix) / _SHARED)
_DATA_MODEL = Path('models') / 'yolox_nano.onnx'


def default_detector(named: str = '', simulated: bool = False) -> Path:
    """Return the weights or bundle to use.

    What is named goes first: a path, or the name of a bundle that was fetched or is shipped.
    Without a name simulated pictures get the shipped bundle; real ones a fetched bundle, else
    $MMEDGE_DATA/models/yolox_nano.onnx, and the shipped bundle only if there is neither. Of
    several bundles one goes first whose networks fuse, unless they are no better than rules.

    :param simulated: the pictures come from the simulator
    :raises EncodingError: when there is none; the message says how to get one
    """
    if named:
        return _named(named)
    bundles = sorted(_bundles(), key=lambda bundle: not bundle.fuses)
    suited = [bundle.path for bundle in bundles if bundle.simulated == simulated]
    others = [bundle.path for bundle in bundles if bundle.simulated != simulated]
    folder = os.environ.get('MMEDGE_DATA', '')
    data = [Path(folder) / _DATA_MODEL] if folder else []
    in_order = (*suited, *others, *data) if simulated else (*suited, *data, *others)
    for path in in_order:
        if path.exists():
            return path
    fetch = f'`mmedge model fetch {KNOWN_MODELS[0].name}`'
    if data:
        raise EncodingError(
            f'no detector: MMEDGE_DATA is set, but {data[0]} does not exist; {fetch} brings one'
        )
    raise EncodingError(
        f'no detector: this version ships no model; {fetch} brings one, --detector FILE names '
        f'one, and so does MMEDGE_DATA, set to a folder with {_DATA_MODEL}'
    )


def bundle_folders() -> Iterator[Path]:
    """Yield the folders of all bundles at hand, fetched ones first."""
    seen = set()
    for models in _model_folders():
        for manifest in sorted(models.glob(f'[!.]*/{MANIFEST}')):
            if manifest.parent.name not in seen:
                seen.add(manifest.parent.name)
                yield manifest.parent


def _named(named: str) -> Path:
    try:
        path = Path(named).expanduser()
    except RuntimeError as err:
        raise EncodingError(f'no detector {named}: {err}; give a full path') from err
    if os.path.lexists(path) or path.name != named or path.suffix:
        return path
    for folder in bundle_folders():
        if folder.name == named:
            return folder
    known = next((model for model in KNOWN_MODELS if model.name == named), None)
    if known is not None:
        raise EncodingError(
            f'the detector {named!r} is not on this machine yet; `mmedge model fetch {named}` '
            'brings it'
        )
    names = ', '.join(folder.name for folder in bundle_folders()) or 'none'
    raise EncodingError(
        f'no detector {named!r}: neither a file nor one of the bundles here ({names}); name a '
        'file, or see `mmedge model list`'
    )


class _Bundle(NamedTuple):
    """A bundle at hand: whether it is made for simulated pictures, and fuses better than rules."""

    path: Path
    simulated: bool
    fuses: bool


def _bundles() -> Iterator[_Bundle]:
    for folder in bundle_folders():
        try:
            bundle = load_bundle(folder)
            yield _Bundle(folder, bundle.domain == SIMULATED, bundle.fuses_better)
        except EncodingError:
            # Not passed over: opening it says what is wrong with it.
            yield _Bundle(folder, simulated=False, fuses=False)


def _model_folders() -> Iterator[Path]:
    with contextlib.suppress(EncodingError):  # without a home nothing can have been fetched
        yield fetched_models_folder()
    yield from _SHIPPED
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        if prefix:
            yield Path(prefix) / _SHARED
