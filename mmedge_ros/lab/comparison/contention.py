"""How the optimiser fares where latencies change, on the published tables, if they are here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mmedge_ros.lab.bench.contention_bench import ContentionSettings, run_contention
from mmedge_ros.lab.bench.published_tables import read_tables

# Under which the paper promises 81 ms and takes 519, s; decisions of a phase.
_LIMIT, _DECISIONS = 0.120, 60
_PHASES = ('H', 'C64', 'C50', 'H')
_OF_A_PHASE = ('late', 'regret_at_end', 'feasible')
_DATA, _FOLDER = 'MMEDGE_DATA', 'mmedge_tables'


def tables_folder() -> Path | None:
    """Return the folder of the published tables below $MMEDGE_DATA; None where there is none."""
    data = os.environ.get(_DATA, '')
    folder = Path(data) / _FOLDER
    return folder if data and folder.is_dir() else None


def contention(folder: Path) -> dict[str, Any]:
    """Fly through H, C64, C50 and H again, beginning with what is known of H.

    ``phases`` and ``static_phases`` (who believes the first table for ever) say by phase how
    many decisions were late and how many points of accuracy the last one is below the best.

    :raises ConfigurationError: if the tables cannot be read
    """
    accuracy = folder / 'accuracy_table.json'
    paths = [folder / f'latency_table_{name}.json' for name in _PHASES]
    report = run_contention(
        read_tables(accuracy, paths), paths, ContentionSettings(_LIMIT, _DECISIONS, 0.0, 0.0, 0)
    )
    static = report['static_table']['phases']
    return {
        'limit_ms': 1e3 * _LIMIT,
        'decisions': _DECISIONS,
        'names': list(_PHASES),
        'phases': [{key: phase[key] for key in _OF_A_PHASE} for phase in report['phases']],
        'static_phases': [{key: phase[key] for key in _OF_A_PHASE} for phase in static],
        'command': f'mmedge bench contention --accuracy ${_DATA}/{_FOLDER}/accuracy_table.json '
        f'--phases {",".join(f"${_DATA}/{_FOLDER}/{path.name}" for path in paths)} '
        f'--limit {1e3 * _LIMIT:g} --decisions {_DECISIONS}',
    }
