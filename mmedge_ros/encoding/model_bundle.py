"""Model bundles: a folder that names the networks of each level, with their hashes.

``manifest.yaml``::

    name: drone_people
    domain: simulated
    camera:
      default: small
      levels:
        small: {weights: small.onnx, sha256: 5f70bf18a086..., bytes: 812345}
        medium: {weights: medium.onnx, sha256: 3e23e8160039...}

``bytes`` and ``domain`` (what the pictures it was trained on are: real or simulated) are
optional. Entries this module does not know (metrics, profiles) are left to others.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from mmedge_ros.encoding.detector import Detector, DetectorParameters, EncodingError
from mmedge_ros.encoding.onnx_detector import DEFAULT_INPUT_SIZE, OnnxDetector
from mmedge_ros.encoding.ultralytics_export import exported_onnx
from mmedge_ros.encoding.weights import require_weights, sha256_of

MANIFEST = 'manifest.yaml'
REAL, SIMULATED = 'real', 'simulated'
_LARGEST_MANIFEST_BYTES = 1 << 20
_SHA256_DIGITS = 64


@dataclass(frozen=True)
class LevelWeights:
    """The weight file of one level; ``size_bytes`` is None where the manifest has no word."""

    path: Path
    sha256: str
    size_bytes: int | None


@dataclass(frozen=True)
class ModelBundle:
    """What a manifest says; files are checked when their level is asked for.

    ``domain`` is real, simulated, or '' where the manifest has no word; ``content`` is all of
    the manifest.
    """

    name: str
    folder: Path
    levels: dict[str, LevelWeights]
    default: str
    domain: str = ''
    content: Mapping[str, Any] = field(default_factory=dict)

    def weights(self, level: str = '') -> Path:
        """Return the verified weight file of a level, of the default one for ''.

        :raises EncodingError: for an unknown level, or a file that is not the manifest's
        """
        chosen = level or self.default
        if chosen not in self.levels:
            near = difflib.get_close_matches(chosen, self.levels, n=1, cutoff=0.0)
            raise EncodingError(
                f'bundle {self.name!r} in {self.folder} has no level {chosen!r}; the nearest is '
                f'{near[0]!r}, it has {", ".join(self.levels)}'
            )
        entry = self.levels[chosen]
        require_weights(entry.path)
        size = entry.path.stat().st_size
        if entry.size_bytes is not None and size != entry.size_bytes:
            raise EncodingError(
                f'{entry.path} has {size} bytes, {MANIFEST} says {entry.size_bytes}; '
                'fetch the bundle again (a cut download, or a Git LFS pointer in its place)'
            )
        digest = sha256_of(entry.path)
        if digest != entry.sha256:
            raise EncodingError(
                f'{entry.path} has SHA-256 {digest[:12]}..., {MANIFEST} says '
                f'{entry.sha256[:12]}...; fetch the bundle again, or correct the manifest if '
                'the weights were changed on purpose'
            )
        return entry.path


def load_bundle(folder: Path) -> ModelBundle:
    """Read the manifest of a bundle.

    :raises EncodingError: if it is missing or malformed; the message names the entry
    """
    path = folder / MANIFEST
    place = str(path)
    content = _read_manifest(path)
    camera = _mapping(content.get('camera'), 'camera', place)
    entries = _mapping(camera.get('levels'), 'camera.levels', place)
    if not entries:
        raise EncodingError(f'{place} has no level under camera.levels; name at least one')
    levels = {level: _level(folder, level, entry, place) for level, entry in entries.items()}
    default = _text(camera.get('default', next(iter(levels))), 'camera.default', place)
    if default not in levels:
        raise EncodingError(
            f'{place} has camera.default {default!r}, which is none of its levels '
            f'({", ".join(levels)})'
        )
    domain = _text(content['domain'], 'domain', place) if 'domain' in content else ''
    if domain not in ('', REAL, SIMULATED):
        raise EncodingError(
            f'{place} has domain {domain!r}; it must be {REAL} or {SIMULATED}, as the pictures '
            'it was trained on were'
        )
    name = _text(content.get('name'), 'name', place)
    return ModelBundle(name, folder, levels, default, domain, content)


def model_levels(path: Path) -> tuple[tuple[str, ...], str]:
    """Return the levels of a bundle and its default one.

    A plain weight file has none of its own, () and '': it serves every level.
    """
    if not _is_folder(path):
        return (), ''
    bundle = load_bundle(path)
    return tuple(bundle.levels), bundle.default


def domain_warning(path: Path, source_is_simulated: bool) -> str:
    """Return a sentence if a detector has only ever seen simulated pictures and these are real.

    :param path: bundle folder or weight file; of the latter nobody knows
    :return: '' if there is nothing to warn of
    :raises EncodingError: if a bundle's manifest cannot be read
    """
    if source_is_simulated or not _is_folder(path):
        return ''
    bundle = load_bundle(path)
    if bundle.domain != SIMULATED:
        return ''
    return (
        f'the detector {bundle.name!r} has only ever seen simulated people, and these pictures '
        'come from a real camera: expect it to miss people and to see some where there are '
        'none. `mmedge model fetch yolox_nano` brings one for real people'
    )


def open_detector(
    path: Path,
    parameters: DetectorParameters | None = None,
    level: str = '',
    device: str = 'cpu',
) -> Detector:
    """Open the network of a level, from a bundle folder or a plain .onnx or .pt file.

    A plain file serves every level. A .pt file is exported first, once (ultralytics_export).

    :param device: cpu, cuda, tensorrt or openvino
    :raises EncodingError: if that is not possible; the message names the file and the remedy
    """
    parameters = parameters or DetectorParameters()
    weights = load_bundle(path).weights(level) if _is_folder(path) else require_weights(path)
    if weights.suffix.lower() == '.pt':
        width = parameters.input_width or DEFAULT_INPUT_SIZE[0]
        height = parameters.input_height or DEFAULT_INPUT_SIZE[1]
        weights = exported_onnx(weights, (width, height))
    return OnnxDetector(weights, parameters, device)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False  # require_weights says what is wrong with it


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            raise EncodingError(
                f'{path.parent} is no model bundle: it has no {MANIFEST}; name a bundle folder '
                'or an .onnx or .pt file'
            )
        if path.stat().st_size > _LARGEST_MANIFEST_BYTES:
            raise EncodingError(f'{path} is larger than 1 MiB and is no manifest')
        content = yaml.safe_load(path.read_bytes())
    except OSError as err:
        raise EncodingError(f'{path} cannot be read: {err.strerror}; check its rights') from err
    except (yaml.YAMLError, RecursionError) as err:
        raise EncodingError(f'{path} is not valid YAML: {str(err)[:300]}') from err
    except ValueError as err:
        if isinstance(err, EncodingError):
            raise
        raise EncodingError(f'{path} holds a value YAML cannot read: {err}') from err
    return _mapping(content, 'the whole file', str(path))


def _level(folder: Path, level: str, entry: Any, place: str) -> LevelWeights:
    where = f'camera.levels.{level}'
    fields = _mapping(entry, where, place)
    name = _text(fields.get('weights'), f'{where}.weights', place)
    relative = PurePosixPath(name)
    # Links inside the folder are the owner's business (colcon makes them), names are not.
    if relative.is_absolute() or '..' in relative.parts or '\0' in name or '\\' in name:
        raise EncodingError(
            f'{place} has {where}.weights {name!r}, which leaves the bundle; '
            'name a file inside its folder'
        )
    digest = _text(fields.get('sha256'), f'{where}.sha256', place).lower()
    if len(digest) != _SHA256_DIGITS or set(digest) - set('0123456789abcdef'):
        raise EncodingError(
            f'{place} has {where}.sha256 {digest[:80]!r}; it must be 64 hexadecimal digits '
            '(quoted, as sha256sum prints them)'
        )
    size = fields.get('bytes')
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise EncodingError(f'{place} has {where}.bytes {size!r}; it must be a number above 0')
    return LevelWeights(folder / relative, digest, size)


def _mapping(value: Any, what: str, place: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise EncodingError(
            f'{place} holds no mapping from names for {what}; a manifest looks like '
            '{name: x, camera: {levels: {small: {weights: small.onnx, sha256: "..."}}}}'
        )
    return value


def _text(value: Any, what: str, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise EncodingError(f'{place} has {what} {value!r}; it must be a text (quote it)')
    return value
