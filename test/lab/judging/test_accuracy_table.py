"""Reports of many flights in one table."""

from __future__ import annotations

import json
import math

import pytest
from hand_made_truth import BOX, decided, moved, run, scene, track, true_person

from mmedge_lab.judging.accuracy_table import (
    accuracy_table,
    table_json,
    table_markdown,
    update_gain,
    write_table,
)
from mmedge_ros.records.ground_truth import GroundTruth
from mmedge_ros.report.report import report_of


def flight(light, right=0.0, windows=4, seconds=1.0, people=1):
    """Report of a flight whose boxes are all so many pixels beside the truth."""
    crowd = [true_person(n, moved(BOX, 0.0, 110.0 * n)) for n in range(people)]
    frames = range(0, round(1000 * seconds) + 1, 20)
    truth = GroundTruth([scene(ms, *crowd, light=light) for ms in frames])
    shown = [track(n, moved(BOX, right, 110.0 * n)) for n in range(people)]
    return report_of(run([decided(100 * n, *shown) for n in range(windows)], truth))


def test_each_scenario_has_a_row_and_the_last_row_is_all():
    rows = accuracy_table([flight('night'), flight('day'), flight('day')])
    assert [row['scenario'] for row in rows] == ['meadow_day_near', 'meadow_night_near', 'all']
    assert [row['flights'] for row in rows] == [2, 1, 3]
    assert rows[-1]['people'] == 12


def test_means_are_weighted_by_the_people_they_are_means_of():
    right, off = flight('day', windows=2), flight('day', 8.0, windows=6)
    (row, _) = accuracy_table([right, off])
    assert row['mean_iou'] == pytest.approx((2 * 1.0 + 6 * 32 / 48) / 8, abs=1e-5)
    assert row['precision'] == row['recall'] == row['mota'] == 1.0
    assert row['idf1'] == 1.0


def test_a_flight_with_more_people_weighs_more_in_streaming():
    two, one = flight('day', people=2), flight('day', 8.0)
    (row, _) = accuracy_table([two, one])
    expected = 2 * two['accuracy']['streaming_mean_iou'] + one['accuracy']['streaming_mean_iou']
    assert row['streaming_mean_iou'] == pytest.approx(expected / 3, abs=1e-5)


def test_what_updates_add_is_weighted_by_people_and_drawn_by_seed():
    reports = [flight('day', people=people) for people in (1, 3, 2, 1)]
    for report, gain in zip(reports, (0.1, 0.2, 0.2, 0.1), strict=True):
        accuracy = report['accuracy']
        accuracy['streaming_mean_iou_decisions'] = accuracy['streaming_mean_iou'] - gain
    reports.append(report_of(run([decided(0)])))
    found = update_gain(reports, ['1', '1', '2', '3', '4'])
    assert found.value == pytest.approx((0.1 + 3 * 0.2 + 2 * 0.2 + 0.1) / 7)
    assert 0.0999 < found.low < found.value < found.high < 0.2001
    assert math.isnan(update_gain(reports[:2], ['1', '1']).low)


def test_the_bounds_of_the_nees_narrow_with_more_flights():
    one, many = (accuracy_table([flight('day', seconds=2.0)] * n)[0] for n in (1, 10))
    assert many['nees_samples'] == 10 * one['nees_samples']
    assert many['nees_high'] - many['nees_low'] < one['nees_high'] - one['nees_low']
    assert one['nees'] == many['nees'] == 0.0
    assert one['nees_in_bounds'] is False
    assert one['nees_outside_95'] == many['nees_outside_95'] == 0.0


def test_reports_without_truth_are_left_out():
    assert accuracy_table([report_of(run([decided(0)]))]) == []
    assert accuracy_table([]) == []


def test_a_flight_in_which_nobody_was_visible_has_a_row_of_dashes():
    truth = GroundTruth([scene(ms) for ms in (0, 20, 40)])
    (row, _) = accuracy_table([report_of(run([decided(0)], truth))])
    assert math.isnan(row['mean_iou'])
    assert row['nees_in_bounds'] is None
    assert '| – |' in table_markdown([row])
    assert json.loads(table_json([row]))[0]['mean_iou'] is None


def test_the_table_is_written_and_its_lines_have_equal_cells(tmp_path):
    rows = accuracy_table([flight('day'), flight('night')])
    write_table(rows, tmp_path / 'new')
    text = (tmp_path / 'new' / 'accuracy_table.md').read_text()
    lines = text.splitlines()
    assert len(lines) == 5
    assert len({line.count('|') for line in lines}) == 1
    assert 'not in' in lines[2]
    content = json.loads((tmp_path / 'new' / 'accuracy_table.json').read_text())
    assert content[-1]['scenario'] == 'all'
