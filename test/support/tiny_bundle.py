"""Writes a bundle of tiny detectors, one for each level."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import yaml
from tiny_detector import write_tiny_detector

SCORES = {'small': 0.7, 'large': 0.9}


def write_tiny_bundle(folder: Path, scores: Mapping[str, float] | None = None) -> Path:
    """Write a bundle whose levels tell themselves apart by the score of their boxes."""
    folder.mkdir(parents=True)
    levels = {}
    for level, score in (scores or SCORES).items():
        path = write_tiny_detector(folder / f'{level}.onnx', score=score)
        content = path.read_bytes()
        levels[level] = {
            'weights': path.name,
            'sha256': hashlib.sha256(content).hexdigest(),
            'bytes': len(content),
        }
    manifest = {'name': folder.name, 'domain': 'simulated', 'camera': {'levels': levels}}
    (folder / 'manifest.yaml').write_text(yaml.safe_dump(manifest))
    return folder
