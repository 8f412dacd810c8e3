"""Reports of trainings with figures made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def _about(value: float) -> dict[str, float]:
    return {'value': value, 'low': value - 0.001, 'high': value + 0.001}


def gate(
    lost: float = 0.004, saved: float = 0.2, *, certified: bool = True, tested: bool = True
) -> dict[str, Any]:
    """Six flights, of which the gate loses less than what it is compared with."""
    sets = {'samples': '/somewhere/train', 'calibration': '/somewhere/calibration'}
    return {
        'bundle': {'name': 'people', 'path': 'models/people'},
        'sets': sets | ({'test': '/somewhere/test'} if tested else {}),
        'calibration_flights': 12,
        'judged_flights': 6,
        'delta': 0.01,
        'certificates': [],
        'rivals': [],
        'certified': certified,
        'ships': certified and saved >= 0.1,
        'ours': {
            'value': 0.9 if certified else 0.5,
            'early': 120,
            'iou_loss': _about(lost + 0.00025),
            'miss_loss': _about(0.0),
            'saved': _about(saved),
        },
        'against': {name: _about(lost - 0.012) for name in ('thinned', 'reuse', 'gate on reuse')},
    }


def ablations(full: float = 50.0, last_unit: float = 40.0, whole: float = 45.0) -> dict[str, Any]:
    """Three seeds and four flights; the sums of IoU of each variant, of 100 people."""
    others = {'full': full, 'last_unit': last_unit, 'whole_window': whole}
    variants = {}
    for name in ('full', 'no_shift', 'no_differences', 'last_unit', 'whole_window'):
        worth = round(others.get(name, 48.0) / 110.0, 4)
        less = round(worth - full / 110.0, 4)
        figure = {
            'mean': worth,
            'less_full': [less, round(less - 0.001, 4), round(less + 0.001, 4)],
        }
        names = ('worth', 'mean_iou', 'recall', 'precision', 'range_error')
        same = {'mean': 0.5, 'less_full': [0.0, -0.001, 0.001]}
        variants[name] = dict.fromkeys(names, same) | {'worth': figure}
    entry = {'newest_picture': {'worth': 0.4}, 'variants': variants}
    return {
        'plan': {'learned_from': ['a', 'b']},
        'steps': 10,
        'seeds': [0, 1, 2],
        'flights': ['a', 'b', 'c', 'd'],
        'configurations': {'full': entry, 'least': entry},
        'training_seconds': {},
    }


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
