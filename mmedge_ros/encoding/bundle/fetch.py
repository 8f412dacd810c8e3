"""Brings a known model to this machine: a download that is checked, or not there at all."""

from __future__ import annotations

import http.client
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import yaml

from mmedge_ros import __version__
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import REAL, load_bundle
from mmedge_ros.encoding.bundle.registry import KnownModel
from mmedge_ros.encoding.bundle.weights import sha256_of

_CHUNK_BYTES = 1 << 16
_LONGEST_SILENCE = 30.0  # s
_LEVEL = 'small'

Progress = Callable[[float], None]


class _Readable(Protocol):
    def read(self, amount: int, /) -> bytes: ...


def is_installed(model: KnownModel, models: Path) -> bool:
    """Tell whether the model is there, whole and unchanged."""
    try:
        bundle = load_bundle(models / model.name)
        (weights,) = bundle.entries(_LEVEL)
        weights.verified()
        return weights.sha256 == model.sha256
    except (EncodingError, ValueError):
        return False


def install_model(
    model: KnownModel,
    models: Path,
    source: Path | None = None,
    on_progress: Progress | None = None,
) -> Path:
    """Download a model, check it, and make a bundle of it below ``models``.

    A bundle of that name is replaced; it stays as it is when anything goes wrong.

    :param source: take this file instead of the network
    :raises EncodingError: if that is not possible; the message says what to do
    """
    folder = models / model.name
    part = models / f'.{model.name}.{os.getpid()}.part'
    try:
        part.mkdir(parents=True)
        try:
            weights = part / f'{model.name}.onnx'
            with _opened(model, source) as reader:
                _copy(reader, weights, model, on_progress)
            _check(weights, model)
            (part / MANIFEST).write_text(_manifest(model, weights.name), encoding='utf-8')
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as err:
        raise EncodingError(
            f'{model.name} cannot be kept in {models}: {err.strerror or err}; make room and '
            'rights there, or set XDG_DATA_HOME to another folder'
        ) from err
    return folder


@contextmanager
def _opened(model: KnownModel, source: Path | None) -> Iterator[_Readable]:
    if source is not None:
        try:
            file = source.open('rb')
        except OSError as err:
            raise EncodingError(f'{source} cannot be read: {err.strerror or err}') from err
        with file:
            yield file
        return
    request = urllib.request.Request(
        model.url, headers={'User-Agent': f'mmedge_ros/{__version__}'}
    )
    try:
        answer = urllib.request.urlopen(request, timeout=_LONGEST_SILENCE)
    except urllib.error.HTTPError as err:
        err.close()
        raise EncodingError(
            f'{model.url} answers {err.code} {err.reason}; {_by_hand(model)}'
        ) from err
    except (OSError, http.client.HTTPException, ValueError) as err:
        reason = getattr(err, 'reason', None) or err
        raise EncodingError(
            f'{model.url} cannot be reached ({reason}); {_by_hand(model)}'
        ) from err
    with answer:
        yield answer


def _copy(
    reader: _Readable, target: Path, model: KnownModel, on_progress: Progress | None
) -> None:
    """Copy what is read, but never much more than there should be."""
    done = 0
    with target.open('wb') as file:
        while done <= model.size_bytes:
            try:
                chunk = reader.read(_CHUNK_BYTES)
            except (OSError, http.client.HTTPException) as err:
                raise EncodingError(
                    f'reading {model.name} broke off after {done} of {model.size_bytes} bytes '
                    f'({err}); try again'
                ) from err
            if not chunk:
                break
            file.write(chunk)
            done += len(chunk)
            if on_progress:
                on_progress(min(done / model.size_bytes, 1.0))
        file.flush()
        os.fsync(file.fileno())
    if done < model.size_bytes:
        raise EncodingError(
            f'{model.name} ended after {done} of {model.size_bytes} bytes; try again'
        )


def _check(weights: Path, model: KnownModel) -> None:
    digest = sha256_of(weights)
    if digest != model.sha256:
        raise EncodingError(
            f'{model.name} has SHA-256 {digest}, not {model.sha256}: it is another file than '
            'the one this registry knows, and was thrown away. Name a network you trust with '
            '--detector FILE'
        )


def _by_hand(model: KnownModel) -> str:
    return (
        'by hand: bring that file here from a machine with a network, then `mmedge model fetch '
        f'{model.name} --from FILE`'
    )


def _manifest(model: KnownModel, weights: str) -> str:
    level = {'weights': weights, 'sha256': model.sha256, 'bytes': model.size_bytes}
    content = {
        'name': model.name,
        'domain': REAL,
        'camera': {'default': _LEVEL, 'levels': {_LEVEL: level}},
        'description': model.description,
        'training': {'data': model.trained_on},
        'source': model.url,
        'licence': f'{model.licence} ({model.licence_url})',
    }
    return str(yaml.safe_dump(content, sort_keys=False, width=96, allow_unicode=True))
