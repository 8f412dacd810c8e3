"""The gate of a model bundle: its weights, and the thresholds that were certified for it.

The manifest's entry::

    gate:
      network: {weights: gate.npz, sha256: ..., bytes: 9876}
      strategy: decision
      slow: [camera]
      thresholds:
        - {delta: 0.01, threshold: 0.82, confidence: 0.9, seeds: 24, early: 912,
           iou_loss: 0.004, miss_loss: 0.002, early_loss: 0.11}

``strategy`` is the fusion the gate was trained with; ``slow`` are the modalities it may let rest.
``delta`` is the most that a flight may lose, of streaming IoU and of people kept in view; one that
is not listed takes the threshold of the next smaller one. ``early_loss`` is what early decisions
lost on average against those of a run without skipping: what audits in flight compare with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_ros.core.untrusted_files import is_number, shown
from mmedge_ros.encoding.bundle.manifest import Manifest
from mmedge_ros.windows import SkippingError
from mmedge_ros.windows.gate import Gate, read_gate

SECTION, NETWORK, WEIGHTS = 'gate', 'network', 'gate.npz'
_MOST_THRESHOLDS = 100
_MOST_MODALITIES = 16


class CertifiedThreshold(NamedTuple):
    """A threshold, what it keeps, and the usual loss of early decisions."""

    delta: float
    threshold: float
    early_loss: float


@dataclass(frozen=True)
class BundleGate:
    """A gate with its certified thresholds, by delta."""

    gate: Gate
    strategy: str
    slow: tuple[str, ...]
    thresholds: tuple[CertifiedThreshold, ...]

    def certified(self, delta: float) -> CertifiedThreshold | None:
        """Return the threshold that loses at most ``delta``; None where none is known to."""
        kept = [known for known in self.thresholds if known.delta <= delta + 1e-12]
        return kept[-1] if kept else None


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


def _thresholds(path: Path, section: Mapping[str, Any]) -> tuple[CertifiedThreshold, ...]:
    rows = section.get('thresholds', [])
    if not isinstance(rows, list) or len(rows) > _MOST_THRESHOLDS:
        raise SkippingError(f'{path} has gate.thresholds {shown(rows)}; it must be a short list')
    known = []
    for number, row in enumerate(rows):
        where = f'gate.thresholds[{number}]'
        if not isinstance(row, Mapping):
            raise SkippingError(f'{path} has {where} {shown(row)}; it must be a mapping')
        known.append(
            CertifiedThreshold._make(
                _share(path, where, row, name) for name in CertifiedThreshold._fields
            )
        )
    return tuple(sorted(known))


def _share(path: Path, where: str, row: Mapping[Any, Any], name: str) -> float:
    value: Any = row.get(name)
    # Any confidence reaches a threshold of 0.
    if not is_number(value, 0.0, 1.0) or not value:
        raise SkippingError(
            f'{path} has {where}.{name} {shown(value)}; it must be above 0 and at most 1'
        )
    return float(value)
