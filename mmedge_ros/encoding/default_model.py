"""Which network is used when nobody names one."""

from __future__ import annotations

import os
from pathlib import Path

from mmedge_ros.encoding.detector import EncodingError

_SOURCE_MODELS = Path(__file__).resolve().parents[2] / 'models'
_DATA_MODEL = Path('models') / 'yolox_nano.onnx'


def default_detector(named: str = '') -> Path:
    """Return the weights or bundle to use: the named one, the shipped one, the data folder's.

    :raises EncodingError: when there is none; the message says how to get one
    """
    if named:
        try:
            return Path(named).expanduser()
        except RuntimeError as err:
            raise EncodingError(f'no detector {named}: {err}; give a full path') from err
    for models in (_SOURCE_MODELS, *_installed_models()):
        for manifest in sorted(models.glob('*/manifest.yaml')):
            return manifest.parent
    folder = os.environ.get('MMEDGE_DATA', '')
    if not folder:
        raise EncodingError(
            'no detector: this version ships no model; name one with --detector FILE, or set '
            f'MMEDGE_DATA to a folder with {_DATA_MODEL}'
        )
    weights = Path(folder) / _DATA_MODEL
    if not weights.is_file():
        raise EncodingError(f'no detector: MMEDGE_DATA is set, but {weights} does not exist')
    return weights


def _installed_models() -> list[Path]:
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    return [Path(p) / 'share' / 'mmedge_ros' / 'models' for p in prefixes if p]
