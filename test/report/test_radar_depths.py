"""Depths that decision fusion takes from the radar."""

from dataclasses import replace

import pytest

from mmedge_ros.report.radar_depths import RadarScans, radar_set_depths


def test_depths_of_the_synthetic_walk_are_those_of_its_people(build_run):
    record = build_run(3.0)
    result = radar_set_depths(record)
    assert len(result) > 60
    for stamp_ns, box, depth in result:
        assert depth == pytest.approx(450.0 * 1.68 / box.height, rel=0.15)
        assert stamp_ns in record.camera_stamps_ns


def test_boxes_without_returns_are_left_out(build_run):
    record = build_run(1.0)
    silent = [unit for unit in record.features if unit.modality == 'camera']
    assert radar_set_depths(replace(record, features=silent)) == []


def test_without_calibration_there_are_no_depths(build_run):
    assert radar_set_depths(replace(build_run(1.0), camera=None)) == []


def test_scans_come_by_stamp_even_when_they_arrived_out_of_order(build_run):
    record = build_run(1.0)
    scans = RadarScans(replace(record, features=record.features[::-1]))
    stamps = sorted(unit.stamp_ns for unit in record.features if unit.modality == 'radar')
    assert [scan.stamp_ns for scan in scans.before(stamps[7])] == stamps[6:8]
    assert [scan.stamp_ns for scan in scans.before(stamps[0])] == stamps[:1]
    assert scans.before(stamps[0] - 1) == []
