"""Reports of trainings, made by the code that makes real ones from figures made by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from hand_made_ablations import runs
from hand_made_gate_figures import flight

from mmedge_lab.training.ablation_table import tabulate
from mmedge_lab.training.gates.certificate import Certificate, total
from mmedge_lab.training.gates.gate_report import GateEvidence, gate_report


def gate(
    lost: float = 0.004, saved: float = 0.2, *, certified: bool = True, tested: bool = True
) -> dict[str, Any]:
    """Six flights, of which the gate loses less than what it is compared with."""
    ours = tuple(flight(lost + 0.0001 * number, saved) for number in range(6))
    worse = [flight(0.03 + 0.0001 * number, 0.5) for number in range(6)]
    certificate = Certificate(
        0.01, 0.9, 0.9 if certified else math.inf, 12, total([one.loss for one in ours]), 0.04
    )
    rivals = {'thinned 0.5': worse, 'reuse 0.5': worse, 'gate on reuse 0.9': list(ours)}
    evidence = GateEvidence((ours, ours), (0.9, 0.5), rivals, (certificate,), {0.01: ()}, 0.01)
    sets = {'samples': '/somewhere/train', 'calibration': '/somewhere/calibration'}
    return {
        'bundle': {'name': 'people', 'path': 'models/people'},
        'sets': sets | ({'test': '/somewhere/test'} if tested else {}),
        'calibration_flights': 12,
        **gate_report(evidence),
    }


def ablations(full: float = 50.0, last_unit: float = 40.0, whole: float = 45.0) -> dict[str, Any]:
    """Three seeds and four flights; the sums of IoU of each variant, of 100 people."""
    others = {'full': full, 'last_unit': last_unit, 'whole_window': whole}
    table = tabulate(runs(lambda variant, seed: others.get(variant, 48.0)))
    return {'plan': {'learned_from': ['a', 'b']}, 'steps': 10, **table}


def predictor(high: float = -0.002, *, used: bool = True) -> dict[str, Any]:
    """Choices less far from the best than the bundle's table, at most ``high`` in 95 %."""

    def against(low: float, top: float) -> dict[str, Any]:
        value = (low + top) / 2
        same = {'predictor': 0.02, 'table': 0.02, 'difference': [0.0, -0.0005, 0.0005]}
        regret = {'predictor': 0.05 + value, 'table': 0.05, 'difference': [value, low, top]}
        return {'squared': same, 'within': same, 'regret': regret}

    return {
        'software': {'bundle': 'people'},
        'calibration': {'set': 'calibration', 'flights': 9, 'windows': 90},
        'test': {'set': 'test', 'flights': 6, 'windows': 60},
        'used': 'predictor' if used else 'table',
        'against': {
            'table_of_the_bundle': against(-0.008, high),
            'table_of_the_same_windows': against(-0.006, -0.001),
        },
    }


def written(folder: Path, content: dict[str, Any]) -> Path:
    """Write a report into a folder of its own, as the commands do."""
    folder.mkdir(parents=True)
    (folder / 'report.json').write_text(json.dumps(content, allow_nan=False))
    return folder
