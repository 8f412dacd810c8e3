"""Small tables in the published format, written by hand."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

MODELS, RATES, SOUNDS = ('tiny', 'huge'), ('5', '15', '45'), ('mono', 'stereo')


def nested(value: Any) -> dict[str, Any]:
    """A table over model, rate and sound; ``value(m, r, s)`` gives each cell."""
    table: dict[str, Any] = {}
    for (m, model), (r, rate), (s, sound) in product(*map(enumerate, (MODELS, RATES, SOUNDS))):
        table.setdefault(model, {}).setdefault(rate, {})[sound] = value(m, r, s)
    return table


def accuracy_cell(m: int, r: int, s: int) -> dict[str, str]:
    mean = 60.0 + 10 * m + 5 * r + 3 * s
    return {'left': f'{mean - 2:.2f}', 'right': f'{mean + 2:.2f}'}


def latency_cell(m: int, r: int, s: int) -> float:
    return 20.0 + 15 * m + 10 * r + 2 * s


def busy_cell(m: int, r: int, s: int) -> float:
    """Under contention, the heavy configurations overflow."""
    heavy = m + 0.5 * r
    return latency_cell(m, r, s) * (1.0 + 4.0 * max(0.0, heavy - 0.9))


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def write_all(folder: Path) -> tuple[Path, Path, Path]:
    """Accuracy, quiet latency and busy latency."""
    return (
        write(folder / 'accuracy.json', nested(accuracy_cell)),
        write(folder / 'quiet.json', nested(latency_cell)),
        write(folder / 'busy.json', nested(busy_cell)),
    )
