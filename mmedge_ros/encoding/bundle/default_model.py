"""Which network is used when none is named, and what a name stands for.

What the pictures come from decides which one goes first. A detector that never saw a real person
is poor at them, and one that never saw a simulated one at those. Of real pictures the view
decides: detectors of others learned from pictures taken at eye level.
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
from mmedge_ros.encoding.bundle.model_bundle import REAL, SIMULATED, load_bundle
from mmedge_ros.encoding.bundle.registry import KNOWN_MODELS
from mmedge_ros.encoding.bundle.weights import fetched_models_folder

_SHARED = Path('share') / 'mmedge_ros' / 'models'
# Beside the sources, and where pip installs them.
_SHIPPED = (Path(__file__).resolve().parents[3] / 'models', Path(sys.prefix) / _SHARED)
_DATA_MODEL = Path('models') / 'yolox_nano.onnx'
_OF_OTHERS = {model.name for model in KNOWN_MODELS}


def default_detector(named: str = '', simulated: bool = False, above: bool = False) -> Path:
    """Return the weights or bundle to use.

    What is named goes first: a path, or the name of a bundle that was fetched or is shipped.
    Without a name simulated pictures get a bundle that saw simulated ones, and real ones one that
    saw real ones. Seen from above these are bundles of one's own and the shipped one; at eye level
    a detector of others goes first that was fetched, or $MMEDGE_DATA/models/yolox_nano.onnx. Of
    several bundles one goes first whose networks fuse, unless they are no better than rules.

    :param simulated: the pictures come from the simulator
    :param above: a drone in flight takes them
    :raises EncodingError: when there is none; the message says how to get one
    """
    if named:
        return _named(named)
    bundles = sorted(_bundles(), key=lambda bundle: not bundle.fuses)
    kind = SIMULATED if simulated else REAL
    fetched = [bundle.path for bundle in bundles if bundle.path.name in _OF_OTHERS]
    ours = [bundle for bundle in bundles if bundle.path.name not in _OF_OTHERS]
    suited = [bundle.path for bundle in ours if kind in bundle.domain]
    unsuited = [bundle.path for bundle in ours if kind not in bundle.domain]
    folder = os.environ.get('MMEDGE_DATA', '')
    data = [Path(folder) / _DATA_MODEL] if folder else []
    eye_level = [*fetched, *data]
    if simulated:
        in_order = [*suited, *unsuited, *eye_level]
    else:
        # Bundles of one's own that saw nothing but real pictures are made for the camera at hand.
        own = [bundle.path for bundle in ours if bundle.domain == REAL]
        in_order = [*own, *(suited if above else ()), *eye_level, *suited, *unsuited]
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
    """A bundle at hand: what pictures it saw, and whether it fuses better than rules."""

    path: Path
    domain: str
    fuses: bool


def _bundles() -> Iterator[_Bundle]:
    for folder in bundle_folders():
        try:
            bundle = load_bundle(folder)
            yield _Bundle(folder, bundle.domain or REAL, bundle.fuses_better)
        except EncodingError:
            # Not passed over: opening it says what is wrong with it.
            yield _Bundle(folder, REAL, fuses=False)


def _model_folders() -> Iterator[Path]:
    with contextlib.suppress(EncodingError):  # without a home nothing can have been fetched
        yield fetched_models_folder()
    yield from _SHIPPED
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        if prefix:
            yield Path(prefix) / _SHARED
