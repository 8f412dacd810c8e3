"""Reads the manifest of a model bundle; where it is wrong, the message names the entry.

Nothing in it is trusted: names must stay inside the folder, and files are compared with what
the manifest says of them before they are opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from mmedge_ros.core.untrusted_files import is_number, load_shallow_yaml, read_bounded, shown
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.weights import SUFFIXES, require_weights, sha256_of

MANIFEST = 'manifest.yaml'
PRECISIONS = ('fp32', 'fp16', 'int8')
MIXED = 'mixed'
_LARGEST_MANIFEST_BYTES = 1 << 20
_SHA256_DIGITS = 64
_GATE_SUFFIX = '.npz'
_MOST_STAGES = 32
_MOST_NAMES = 100


@dataclass(frozen=True)
class BundleFile:
    """A weight file; ``size_bytes`` is None where the manifest has no word.

    ``precision`` is that of its weights, one of `PRECISIONS`.
    """

    path: Path
    sha256: str
    size_bytes: int | None
    precision: str = PRECISIONS[0]

    def verified(self, suffixes: tuple[str, ...] = (*SUFFIXES, _GATE_SUFFIX)) -> Path:
        """Return the path of the file once it is known to be the manifest's.

        :param suffixes: what its name may end in
        :raises EncodingError: if it is missing, or is not the manifest's
        """
        require_weights(self.path, suffixes)
        size = self.path.stat().st_size
        if self.size_bytes is not None and size != self.size_bytes:
            raise EncodingError(
                f'{self.path} has {size} bytes, {MANIFEST} says {self.size_bytes}; '
                'fetch the bundle again (a cut download, or a Git LFS pointer in its place)'
            )
        digest = sha256_of(self.path)
        if digest != self.sha256:
            raise EncodingError(
                f'{self.path} has SHA-256 {digest[:12]}..., {MANIFEST} says '
                f'{self.sha256[:12]}...; fetch the bundle again, or correct the manifest if '
                'the weights were changed on purpose'
            )
        return self.path


def joint_precision(files: Iterable[BundleFile]) -> str:
    """Return the precision of a network by its files, `MIXED` where they differ."""
    kinds = {file.precision for file in files}
    return kinds.pop() if len(kinds) == 1 else MIXED


Stages = tuple[BundleFile, ...]


@dataclass(frozen=True)
class Levels:
    """The stages of each level of a modality (one where a level is one graph).

    ``labels`` are what a level's own class names are called outside, where they differ; ``tiled``
    are the levels that look at a picture in two halves.
    """

    stages: dict[str, Stages] = field(default_factory=dict)
    default: str = ''
    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    tiled: frozenset[str] = frozenset()


class Manifest:
    """Entries of a manifest; every method raises EncodingError where one is wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / MANIFEST
        self.content = self._mapping(_read(self.path), 'the whole file')

    def has(self, name: str) -> bool:
        return name in self.content

    def text(self, name: str) -> str:
        return self._text(self.content.get(name), name)

    def section(self, name: str) -> dict[str, Any]:
        return self._mapping(self.content.get(name), name)

    def section_of_format(self, name: str, reads: int, remedy: str) -> dict[str, Any]:
        """Return a section with an entry ``format``, which must be the one that is read here."""
        section = self.section(name)
        known = section.get('format')
        if known != reads or isinstance(known, bool):
            raise EncodingError(
                f'{self.path} has {name}.format {shown(known)}, this version reads {reads}; '
                f'{remedy}'
            )
        return section

    def levels(self, modality: str) -> Levels:
        """Return the levels of a modality, and the default one."""
        section = self.section(modality)
        entries = self._mapping(section.get('levels'), f'{modality}.levels')
        if not entries:
            raise EncodingError(
                f'{self.path} has no level under {modality}.levels; name at least one'
            )
        stages = {
            level: self._stages(entry, f'{modality}.levels.{level}')
            for level, entry in entries.items()
        }
        default = self._text(section.get('default', next(iter(stages))), f'{modality}.default')
        if default not in stages:
            raise EncodingError(
                f'{self.path} has {modality}.default {default!r}, which is none of its levels '
                f'({", ".join(stages)})'
            )
        labels = {
            level: self._labels(entry['labels'], f'{modality}.levels.{level}.labels')
            for level, entry in entries.items()
            if 'labels' in entry
        }
        for level, entry in entries.items():
            if entry.get('tiles', 1) not in (1, 2) or isinstance(entry.get('tiles'), bool):
                raise EncodingError(
                    f'{self.path} has {modality}.levels.{level}.tiles {shown(entry["tiles"])}; it '
                    'must be 1 or 2'
                )
        tiled = frozenset(level for level, entry in entries.items() if entry.get('tiles') == 2)
        return Levels(stages, default, labels, tiled)

    def file(self, section: str, name: str) -> BundleFile:
        """Return a file that is the entry ``name`` of a section."""
        return self._file(self.section(section).get(name), f'{section}.{name}')

    def stages(self, section: str) -> Stages:
        """Return the files of a section that is a network in stages, or of one file."""
        return self._stages(self.section(section), section)

    def names(self, section: str, name: str, most: int) -> tuple[str, ...]:
        """Return a list of 1 to ``most`` texts, all different."""
        return self._names(self.section(section).get(name), f'{section}.{name}', most)

    def names_by_name(self, section: str, name: str) -> dict[str, tuple[str, ...]]:
        """Return a mapping from names to lists of texts; {} if it is not there."""
        where = f'{section}.{name}'
        lists = self._mapping(self.section(section).get(name) or {}, where)
        return {k: self._names(v, f'{where}.{k}', _MOST_NAMES) for k, v in lists.items()}

    def share(self, section: str, name: str) -> float:
        value: Any = self.section(section).get(name)
        if not is_number(value, 0.0, 1.0):
            raise EncodingError(
                f'{self.path} has {section}.{name} {str(value)[:80]!r}; it must be a number '
                'from 0 to 1'
            )
        return float(value)

    def _labels(self, entry: Any, where: str) -> Mapping[str, str]:
        return {
            own: self._text(label, f'{where}.{own}')
            for own, label in self._mapping(entry, where).items()
        }

    def _names(self, entry: Any, where: str, most: int) -> tuple[str, ...]:
        texts = entry if isinstance(entry, list) else []
        names = tuple(self._text(text, where) for text in texts)
        if not 1 <= len(names) <= most or len(set(names)) < len(names):
            raise EncodingError(
                f'{self.path} has {where} {str(entry)[:80]!r}; it must be a list of 1 to {most} '
                'texts, all different'
            )
        return names

    def _stages(self, entry: Any, where: str) -> Stages:
        fields = self._mapping(entry, where)
        if 'stages' not in fields:
            return (self._file(fields, where),)
        stages = fields['stages']
        if 'weights' in fields:
            raise EncodingError(f'{self.path} has {where} with both weights and stages; name one')
        if not isinstance(stages, list) or not 1 <= len(stages) <= _MOST_STAGES:
            raise EncodingError(
                f'{self.path} has {where}.stages {str(stages)[:80]!r}; it must be a list of 1 to '
                f'{_MOST_STAGES} files, each with weights and sha256'
            )
        return tuple(
            self._file(stage, f'{where}.stages.{number}') for number, stage in enumerate(stages)
        )

    def _file(self, entry: Any, where: str) -> BundleFile:
        fields = self._mapping(entry, where)
        name = self._text(fields.get('weights'), f'{where}.weights')
        relative = PurePosixPath(name)
        # Links inside the folder are the owner's business (colcon makes them), names are not.
        if relative.is_absolute() or '..' in relative.parts or '\0' in name or '\\' in name:
            raise EncodingError(
                f'{self.path} has {where}.weights {name!r}, which leaves the bundle; '
                'name a file inside its folder'
            )
        digest = self._text(fields.get('sha256'), f'{where}.sha256').lower()
        if len(digest) != _SHA256_DIGITS or set(digest) - set('0123456789abcdef'):
            raise EncodingError(
                f'{self.path} has {where}.sha256 {digest[:80]!r}; it must be 64 hexadecimal '
                'digits (quoted, as sha256sum prints them)'
            )
        size = fields.get('bytes')
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise EncodingError(
                f'{self.path} has {where}.bytes {size!r}; it must be a number above 0'
            )
        precision = fields.get('precision', PRECISIONS[0])
        if precision not in PRECISIONS:
            raise EncodingError(
                f'{self.path} has {where}.precision {str(precision)[:80]!r}; it must be one of '
                f'{", ".join(PRECISIONS)}'
            )
        return BundleFile(self.folder / relative, digest, size, precision)

    def _mapping(self, value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise EncodingError(
                f'{self.path} holds no mapping from names for {what}; a manifest looks like '
                '{name: x, camera: {levels: {small: {weights: small.onnx, sha256: "..."}}}}'
            )
        return dict(value)

    def _text(self, value: Any, what: str) -> str:
        if not isinstance(value, str) or not value:
            raise EncodingError(f'{self.path} has {what} {value!r}; it must be a text (quote it)')
        return value


def _read(path: Path) -> Any:
    try:
        is_there = path.is_file()
    except OSError:
        is_there = True  # `read_bounded` says why it cannot be read
    if not is_there:
        raise EncodingError(
            f'{path.parent} is no model bundle: it has no {MANIFEST}; name a bundle folder or an '
            '.onnx or .pt file'
        )
    raw = read_bounded(path, _LARGEST_MANIFEST_BYTES, EncodingError)
    try:
        return load_shallow_yaml(raw)
    except yaml.YAMLError as err:
        raise EncodingError(f'{path} is not valid YAML: {str(err)[:300]}') from err
    except ValueError as err:
        raise EncodingError(f'{path} holds a value YAML cannot read: {err}') from err
