"""The gate of a model bundle: its weights, and the thresholds that were certified for it.

The manifest's entry::

    gate:
      network: {weights: gate.npz, sha256: ..., bytes: 9876}
      strategy: decision
      slow: [camera]
      thresholds:
        - {alpha: 0.05, threshold: 0.93, confidence: 0.9, method: student, flights: 30,
           early: 912, differing: 21}

``strategy`` is the fusion the gate was trained with; ``slow`` are the modalities it may let rest.
An ``alpha`` that is not listed takes the threshold of the next smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmedge_ros.encoding.bundle.manifest import Manifest
from mmedge_ros.skipping import SkippingError
from mmedge_ros.skipping.gate import Gate, read_gate
from mmedge_ros.untrusted_files import shown

SECTION, NETWORK, WEIGHTS = 'gate', 'network', 'gate.npz'
_MOST_THRESHOLDS = 100
_MOST_MODALITIES = 16


@dataclass(frozen=True)
class BundleGate:
    """A gate with its certified thresholds: pairs of (alpha, threshold), by alpha."""

    gate: Gate
    strategy: str
    slow: tuple[str, ...]
    thresholds: tuple[tuple[float, float], ...]

    def threshold(self, alpha: float) -> float:
        """Return the threshold that keeps the promise; infinite where none is known to."""
        kept = [threshold for known, threshold in self.thresholds if known <= alpha + 1e-12]
        return kept[-1] if kept else math.inf


def bundle_gate(folder: Path) -> BundleGate | None:
    """Read the gate of a bundle; None where it has none.

    :raises EncodingError: if the manifest cannot be read, or the file is not the manifest's
    :raises SkippingError: if the section is wrong, or the file is no gate
    """
    manifest = Manifest(folder)
    if not manifest.has(SECTION):
        return None
    section = manifest.section(SECTION)
    path = manifest.path
    slow = section.get('slow')
    if not isinstance(slow, list) or not 1 <= len(slow) <= _MOST_MODALITIES:
        raise SkippingError(f'{path} has gate.slow {shown(slow)}; list modalities, as [camera]')
    strategy = section.get('strategy')
    if not isinstance(strategy, str):
        raise SkippingError(
            f'{path} has gate.strategy {shown(strategy)}; it must be decision or feature'
        )
    gate = read_gate(manifest.file(SECTION, NETWORK).verified())
    return BundleGate(
        gate, strategy, tuple(str(name) for name in slow), _thresholds(path, section)
    )


def _thresholds(path: Path, section: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    rows = section.get('thresholds', [])
    if not isinstance(rows, list) or len(rows) > _MOST_THRESHOLDS:
        raise SkippingError(f'{path} has gate.thresholds {shown(rows)}; it must be a short list')
    pairs = []
    for number, row in enumerate(rows):
        where = f'gate.thresholds[{number}]'
        if not isinstance(row, Mapping):
            raise SkippingError(f'{path} has {where} {shown(row)}; it must be a mapping')
        pairs.append(tuple(_share(path, where, row, name) for name in ('alpha', 'threshold')))
    return tuple(sorted((alpha, threshold) for alpha, threshold in pairs))


def _share(path: Path, where: str, row: Mapping[Any, Any], name: str) -> float:
    value = row.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Neither NaN nor a threshold that any confidence reaches.
    if not is_number or not 0.0 < float(value or 0.0) <= 1.0:
        raise SkippingError(
            f'{path} has {where}.{name} {shown(value)}; it must be above 0 and at most 1'
        )
    return float(value or 0.0)
