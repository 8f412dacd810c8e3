"""Tracks put together from decisions."""

from dataclasses import replace

import numpy as np

from mmedge_ros.report.trajectories import sensor_mount, start_ns, trajectories


def test_tracks_are_listed_longest_first_with_their_times(build_run):
    record = build_run(12.0)
    result = trajectories(record)
    assert [track.id for track in result] == [1, 2, 3]
    assert result[0].duration > 11.0
    assert result[2].times[0] > 5.9
    assert result[0].positions.shape == (len(record.decisions), 3)


def test_a_track_without_a_box_has_none_to_show(build_run):
    record = build_run(1.0)
    first = record.decisions[0]
    hidden = replace(first, tracks=tuple(replace(t, box=None) for t in first.tracks))
    result = trajectories(replace(record, decisions=[hidden, *record.decisions[1:]]))[0]
    assert np.isnan(result.boxes[0]).all()
    assert np.isfinite(result.boxes[1:]).all()


def test_modalities_are_counted_by_the_decisions_in_which_they_saw_it(build_run):
    result = trajectories(build_run(1.0))[0]
    assert result.seen_by == {'camera': len(result.times), 'radar': len(result.times)}


def test_time_begins_with_the_first_thing_known(build_run, empty_run):
    record = build_run(1.0)
    assert start_ns(record) == record.decisions[0].window_end_ns - 500_000_000
    assert start_ns(replace(record, decisions=[])) == record.camera_stamps_ns[0]
    assert start_ns(empty_run) == 0


def test_ranges_are_measured_from_the_camera_where_it_is_known(build_run, empty_run):
    record = build_run(1.0)
    assert np.allclose(sensor_mount(record).translation, [0.05, 0.0, 1.0])
    assert np.allclose(sensor_mount(replace(record, camera_pose=None)).translation, [0, 0, 1])
    assert np.allclose(sensor_mount(empty_run).translation, 0.0)
