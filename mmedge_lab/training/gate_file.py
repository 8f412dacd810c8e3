"""Writes a trained gate, and the thresholds certified for it, into a model bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mmedge_lab.training.certificate import Certificate, FlightLoss
from mmedge_ros.encoding.bundle.manifest import MANIFEST, Manifest
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.windows import SkippingError
from mmedge_ros.windows.bundle_gate import NETWORK, SECTION, WEIGHTS
from mmedge_ros.windows.gate import Gate, gate_bytes

# Audits compare with the usual loss, which is never nothing.
_LEAST_LOSS = 1e-3


def _lost(total: FlightLoss) -> dict[str, float]:
    return {
        'early': int(total.early),
        'iou_loss': round(total.iou / max(total.people, 1), 5),
        'miss_loss': round(total.missed / max(total.held, 1), 5),
        'early_loss': max(round(total.early_lost / max(total.early, 1), 5), _LEAST_LOSS),
        'saved': round(total.saved / max(total.encodes, 1), 5),
    }


def write_bundle_gate(
    folder: Path,
    gate: Gate,
    strategy: str,
    slow: Sequence[str],
    certificates: Sequence[Certificate],
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write a gate into a bundle; one that is there already is replaced.

    :param facts: what else is known of it, plain values
    :raises SkippingError: if it cannot be written
    :raises EncodingError: if the folder is no bundle
    """
    content = dict(Manifest(folder).content)
    path = folder / WEIGHTS
    data = gate_bytes(gate)
    try:
        path.write_bytes(data)
        content[SECTION] = {
            NETWORK: {'weights': WEIGHTS, 'sha256': sha256_of(path), 'bytes': len(data)},
            'strategy': strategy,
            'slow': list(slow),
            'thresholds': [
                {
                    'delta': certificate.delta,
                    'threshold': round(certificate.threshold, 6),
                    'confidence': certificate.confidence,
                    'seeds': certificate.seeds,
                    **_lost(certificate.total),
                }
                for certificate in sorted(certificates, key=lambda c: c.delta)
                if certificate.holds
            ],
            **(facts or {}),
        }
        text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None)
        (folder / MANIFEST).write_text(text)
    except OSError as err:
        raise SkippingError(f'{path} cannot be written: {err.strerror or err}') from err
