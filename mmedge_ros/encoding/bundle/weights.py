"""Weight files: the check before they are opened, their hash, and where exports are cached."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from mmedge_ros.encoding import EncodingError

SUFFIXES = ('.onnx', '.pt')
_CHUNK_BYTES = 1 << 20


def require_weights(path: Path, suffixes: tuple[str, ...] = SUFFIXES) -> Path:
    """Return ``path`` if it is a file that may hold weights.

    :raises EncodingError: if it is missing, no file, empty, unreadable or of another kind
    """
    try:
        if not path.exists():
            raise EncodingError(
                f'weights {path} do not exist; check the path, relative ones start at {Path.cwd()}'
            )
        if not path.is_file():
            # A pipe or a device would block for ever when read.
            kind = 'a folder' if path.is_dir() else 'not a regular file'
            raise EncodingError(f'weights {path} are {kind}; name an .onnx or .pt file')
        size = path.stat().st_size
    except (OSError, ValueError) as err:
        if isinstance(err, EncodingError):
            raise
        raise EncodingError(f'weights {str(path)!r} cannot be looked up ({err})') from err
    if path.suffix.lower() not in suffixes:
        raise EncodingError(
            f'weights {path} end in {path.suffix!r}; accepted are {" and ".join(suffixes)} files'
        )
    if size == 0:
        raise EncodingError(f'weights {path} are empty; copy or download the file again')
    return path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits.

    :raises EncodingError: if the file cannot be read
    """
    digest = hashlib.sha256()
    try:
        with path.open('rb') as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as err:
        raise EncodingError(f'{path} cannot be read: {err.strerror}; check its rights') from err
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return the folder for exported networks: $XDG_CACHE_HOME or ~/.cache, then mmedge_ros.

    :raises EncodingError: if there is neither
    """
    return _user_folder('XDG_CACHE_HOME', '.cache', 'cache exported networks')


def fetched_models_folder() -> Path:
    """Return the folder of fetched bundles: mmedge_ros/models in the user's data folder.

    That is $XDG_DATA_HOME, or ~/.local/share.

    :raises EncodingError: if there is neither
    """
    return _user_folder('XDG_DATA_HOME', '.local/share', 'keep fetched models') / 'models'


def _user_folder(variable: str, usual: str, purpose: str) -> Path:
    configured = Path(os.environ.get(variable, ''))
    if configured.is_absolute():  # the XDG specification has relative paths ignored
        return configured / 'mmedge_ros'
    try:
        return Path.home() / usual / 'mmedge_ros'
    except RuntimeError as err:
        raise EncodingError(f'no folder to {purpose} in: set {variable} or HOME') from err
