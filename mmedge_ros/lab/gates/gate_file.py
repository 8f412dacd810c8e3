"""Writes a trained gate, and the thresholds certified for it, into a model bundle."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mmedge_ros.encoding.bundle.manifest import MANIFEST, Manifest
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.lab.gates.certificate import Certificate
from mmedge_ros.skipping import SkippingError
from mmedge_ros.skipping.bundle_gate import NETWORK, SECTION, WEIGHTS
from mmedge_ros.skipping.gate import Gate
from mmedge_ros.skipping.gate_features import FIELDS


def gate_bytes(gate: Gate) -> bytes:
    """Return the file of a gate."""
    buffer = io.BytesIO()
    np.savez(
        buffer,
        mean=gate.mean.astype(np.float32),
        scale=gate.scale.astype(np.float32),
        weights1=gate.weights1.astype(np.float32),
        bias1=gate.bias1.astype(np.float32),
        weights2=gate.weights2.astype(np.float32),
        bias2=np.array([gate.bias2], np.float32),
        fields=np.array(FIELDS),
    )
    return buffer.getvalue()


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
                    'alpha': certificate.alpha,
                    'threshold': round(certificate.threshold, 6),
                    'confidence': certificate.confidence,
                    'method': certificate.method,
                    'flights': certificate.flights,
                    'early': certificate.early,
                    'differing': certificate.differing,
                }
                for certificate in sorted(certificates, key=lambda c: c.alpha)
                if certificate.holds
            ],
            **(facts or {}),
        }
        text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None)
        (folder / MANIFEST).write_text(text)
    except OSError as err:
        raise SkippingError(f'{path} cannot be written: {err.strerror or err}') from err
