"""Reports of trainings, made by the code that makes real ones from figures made by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from hand_made_ablations import runs
from hand_made_gate_figures import flight

from mmedge_ros.lab.gates.certificate import Certificate
from mmedge_ros.lab.gates.gate_report import GateEvidence, gate_report
from mmedge_ros.lab.training.ablation_table import tabulate


class Split(NamedTuple):
    certificate: Certificate
    early: int
    differing: int
    saved: float


def gate(wrong: int = 1, *, certified: bool = True, tested: bool = True) -> dict[str, Any]:
    """Six flights, in each ``wrong`` of 40 early decisions at the certified threshold 0.9."""
    certificate = Certificate(
        0.05, 0.9, 'student', 0.9 if certified else math.inf, 12, 240, 6, 0.04
    )
    evidence = GateEvidence(
        (
            tuple(flight(early=40, differing=wrong, confidence=0.95) for _ in range(6)),
            tuple(flight(early=40, differing=wrong + 4, confidence=0.6) for _ in range(6)),
        ),
        (0.9, 0.5),
        {},
        (certificate,),
        {0.05: (Split(certificate, 100, 2, 0.2), Split(certificate, 100, 4, 0.2))},
        0.05,
    )
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
    """Less squared error than the bundle's table, at most ``high`` with 95 % confidence."""

    def against(low: float, top: float) -> dict[str, Any]:
        value = (low + top) / 2
        differences = {
            'squared': {'predictor': 0.05 + value, 'table': 0.05, 'difference': [value, low, top]}
        }
        same = {'predictor': 0.02, 'table': 0.02, 'difference': [0.0, -0.0005, 0.0005]}
        return differences | {'within': same, 'regret': same}

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
