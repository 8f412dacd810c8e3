"""Reports of many flights in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_made_truth import BOX, decided, moved, run, scene, track, true_person

from mmedge_lab.judging.bench_table import table_markdown
from mmedge_lab.judging.replayed_set import report_sums, scenario_of, set_table
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.report import report_of


def flight(light: str, right: float = 0.0, windows: int = 4, people: int = 1) -> dict[str, Any]:
    """Report of a flight whose boxes are all so many pixels beside the truth."""
    crowd = [true_person(n, moved(BOX, 0.0, 110.0 * n)) for n in range(people)]
    truth = GroundTruth([scene(ms, *crowd, light=light) for ms in range(0, 1001, 20)])
    shown = [track(n, moved(BOX, right, 110.0 * n)) for n in range(people)]
    return report_of(run([decided(100 * n, *shown) for n in range(windows)], truth))


def rows(*reports: dict[str, Any]) -> dict[str, dict[str, Any]]:
    content = set_table([Path(f'flight {n}') for n in range(len(reports))], reports)
    assert '`mmedge lab replay-set`' in table_markdown(content)
    return {row['name']: row['values'] for table in content['tables'] for row in table['rows']}


def test_each_scenario_has_a_row_and_all_flights_have_one() -> None:
    found = rows(flight('night'), flight('day'), flight('day'))
    assert list(found) == ['all flights', 'meadow_day_near', 'meadow_night_near']
    assert found['meadow_night_near']['mean_iou']['low'] is None
    assert found['meadow_day_near']['mean_iou']['low'] is not None


def test_means_are_weighted_by_the_people_they_are_means_of() -> None:
    found = rows(flight('day', windows=2), flight('day', 8.0, windows=6))['all flights']
    assert found['mean_iou']['value'] == pytest.approx((2 * 1.0 + 6 * 32 / 48) / 8, abs=1e-5)
    for name in ('precision', 'recall', 'mota', 'idf1'):
        assert found[name]['value'] == 1.0


def test_reports_without_truth_or_people_have_no_figures() -> None:
    without = report_of(run([decided(0)]))
    assert scenario_of(without) == ''
    assert report_sums(without) == {}
    nobody = GroundTruth([scene(ms) for ms in (0, 20, 40)])
    empty = report_of(run([decided(0)], nobody))
    assert 'mean_iou' not in rows(empty)['all flights']
