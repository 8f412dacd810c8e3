"""Message types of a flight: the standard ones and ours, without a ROS installation."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path

from rosbags.interfaces.typing import Typesdict
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from mmedge_ros.lab.simulation import SimulationError

_PACKAGE = 'mmedge_ros'
_NEEDED = ('GroundTruth', 'GroundTruthObject', 'SystemState')


@lru_cache(maxsize=1)
def flight_types() -> Typestore:
    """Return the types a flight is written with.

    :raises SimulationError: if the definitions of our own messages are not found
    """
    folder = definition_folder(_candidates())
    store = get_typestore(Stores.ROS2_KILTED)
    found: Typesdict = {}
    for name in _NEEDED:
        text = (folder / f'{name}.msg').read_text(encoding='utf-8')
        found.update(get_types_from_msg(text, f'{_PACKAGE}/msg/{name}'))
    store.register(found)
    return store


def definition_folder(candidates: list[Path]) -> Path:
    """Return the first folder that holds the definitions of our messages.

    :raises SimulationError: if none does
    """
    for folder in candidates:
        if all((folder / f'{name}.msg').is_file() for name in _NEEDED):
            return folder
    looked = ', '.join(map(str, candidates))
    raise SimulationError(
        f'the definitions of our messages ({_NEEDED[0]}.msg ...) are in none of {looked}; '
        'run ./mmedge once in the sources, or put the share folder of an installed '
        f'{_PACKAGE} below a folder that AMENT_PREFIX_PATH names'
    )


def _candidates() -> list[Path]:
    """Return where they may be: beside the sources, or below an installation prefix."""
    sources = Path(__file__).resolve().parents[3] / 'msg'
    listed = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    prefixes = [Path(prefix) for prefix in (*listed, sys.prefix) if prefix]
    shares = [prefix / 'share' / _PACKAGE / 'msg' for prefix in dict.fromkeys(prefixes)]
    return [sources, *shares]
