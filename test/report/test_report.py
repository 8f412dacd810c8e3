"""The report folder: its files, its keys, its logs, and what happens when it cannot be written."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_lab.judging.decision_log import read_decisions
from mmedge_ros.core.data_types import Box, Decision, ResultKind, StageTiming, Track
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.report import ReportError
from mmedge_ros.report.report import decision_lines, report_of, write_report
from mmedge_ros.report.report_files import require_writable

floats = st.floats()
texts = st.text(st.characters(), max_size=10)
records = st.builds(
    RunRecord,
    bag=texts,
    mode=texts,
    deadline=floats,
    window=floats,
    stride=floats,
    windows=st.integers(0),
    warmup=st.integers(-3, 3),
    problems=st.lists(texts, max_size=3),
    units=st.dictionaries(texts, st.builds(UnitCounts, st.integers(0)), max_size=2),
    resources=st.dictionaries(texts, floats, max_size=3),
    software=st.dictionaries(texts, texts, max_size=3),
    profile=texts,
    duration=floats,
    wall_time=floats,
)
instants = st.integers(-(2**62), 2**62)
numbers = st.floats(-1e6, 1e6)
names = st.text(max_size=8)
vectors = st.tuples(numbers, numbers, numbers).map(np.array)
tracks = st.builds(
    Track,
    id=st.integers(0, 2**32 - 1),
    label=names,
    score=st.floats(0, 1),
    box=st.none() | st.builds(Box, numbers, numbers, numbers, numbers),
    position=vectors,
    velocity=vectors,
    covariance=numbers.map(lambda value: np.diag(np.full(6, value)) + 0.5),
    seen_by=st.lists(names, max_size=2).map(tuple),
    age=st.floats(0, 1e3),
    box_velocity=st.tuples(numbers, numbers),
)
decisions = st.builds(
    Decision,
    window_end_ns=instants,
    state_ns=instants,
    frame_id=names,
    tracks=st.lists(tracks, max_size=3).map(tuple),
    newest_ns=st.dictionaries(names, instants, max_size=2),
    configuration_ids=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    skipped=st.lists(names, max_size=2).map(tuple),
    lost=st.lists(names, max_size=2).map(tuple),
    late=st.lists(names, max_size=2).map(tuple),
    degraded=st.lists(names, max_size=2).map(tuple),
    trail=st.lists(st.builds(StageTiming, names, instants, instants), max_size=3).map(tuple),
    published_ns=instants,
)

KEYS = {'bag', 'mode', 'windows', 'decisions', 'dropped', 'latency_ms', 'age_ms', 'deadline_ms'}
KEYS |= {'deadline_miss_rate', 'stages_ms', 'encoder_calls', 'units', 'accuracy', 'tracking'}
KEYS |= {'resources', 'energy', 'software', 'at_a_glance'}
FILES = ['decisions.jsonl', 'latency.png', 'ranges.png', 'report.html', 'report.json']
FILES += ['tracks.png']


def content_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope='module')
def written(build_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp('runs') / 'new' / 'report'
    report = write_report(build_run(4.0), folder)
    return folder, report


def test_the_folder_is_made_and_holds_every_file(written):
    folder, report = written
    assert sorted(content_of(folder)) == FILES
    assert json.loads((folder / 'report.json').read_text()) == report


def test_the_stable_keys_are_there(written):
    report = written[1]
    assert set(report) >= KEYS
    summary = {'p50', 'p95', 'p99', 'mean', 'max'}
    assert set(report['latency_ms']) == summary
    assert set(report['age_ms']) == {'camera', 'radar'}
    assert set(report['age_ms']['radar']) == summary
    assert set(report['stages_ms']['encode']) == {'p50', 'p95'}
    assert {'camera.encode', 'radar.encode'} <= set(report['stages_ms'])
    counters = {'captured', 'transferred', 'received', 'encoded', 'skipped', 'dropped', 'late'}
    assert counters | {'lost'} <= set(report['units']['camera'])
    assert set(report['encoder_calls']) == {'camera', 'radar'}
    assert {'cpu_s', 'peak_rss_mb'} <= set(report['resources'])
    assert {'version', 'git', 'bundle'} <= set(report['software'])
    assert report['accuracy'] is None
    assert report['tracking'] is None


def test_the_figures_are_those_of_the_run(build_run, written):
    record, report = build_run(4.0), written[1]
    assert (report['windows'], report['decisions'], report['dropped']) == (37, 36, 1)
    assert (report['warmup_decisions'], report['measured_decisions']) == (5, 31)
    assert report['deadline_ms'] == 50.0
    assert report['encoder_calls'] == {'camera': 80, 'radar': 80}
    latencies = [decision.latency * 1e3 for decision in record.decisions[5:]]
    assert report['latency_ms']['p50'] == pytest.approx(np.median(latencies))
    assert report['latency_ms']['max'] == pytest.approx(max(latencies))
    assert report['decisions_with']['skipped'] == {'radar': 1}
    assert report['tracks'][0]['seen_by'] == {'camera': 36, 'radar': 36}


def test_updates_have_a_log_of_their_own_and_count_nowhere_else(build_run, written, tmp_path):
    record = build_run(4.0)
    record.updates = [
        replace(decision, kind=ResultKind.UPDATE, published_ns=decision.published_ns - 50_000_000)
        for decision in record.decisions
    ]
    report = write_report(record, tmp_path)
    assert report['updates'] == 36
    for key in ('decisions', 'latency_ms', 'age_ms', 'deadline_miss_rate', 'stages_ms', 'tracks'):
        assert report[key] == written[1][key], key
    log = read_decisions(tmp_path / 'updates.jsonl')
    assert [u.published_ns for u in log] == [u.published_ns for u in record.updates]
    write_report(build_run(1.0), tmp_path)
    assert not (tmp_path / 'updates.jsonl').exists()


def test_equal_runs_give_equal_files_byte_for_byte(build_run, tmp_path):
    for name in ('first', 'second'):
        write_report(build_run(2.0), tmp_path / name)
    assert content_of(tmp_path / 'first') == content_of(tmp_path / 'second')


def test_a_run_in_which_nothing_happened_has_a_report(empty_run, tmp_path):
    report = write_report(empty_run, tmp_path)
    assert report['latency_ms'] == dict.fromkeys(report['latency_ms'])
    assert report['deadline_miss_rate'] is None
    assert report['units']['radar']['received'] == 0
    assert sorted(content_of(tmp_path)) == ['decisions.jsonl', 'report.html', 'report.json']


def test_a_run_with_hardly_any_decision_has_a_report(build_run, tmp_path):
    record = build_run(1.0)
    report = write_report(replace(record, decisions=record.decisions[:1]), tmp_path)
    assert report['measured_decisions'] == 0
    assert 'Only the warm-up was recorded' in (tmp_path / 'report.html').read_text()


def test_a_new_report_replaces_the_old_one_and_leaves_nothing_of_it(
    build_run, empty_run, tmp_path
):
    write_report(build_run(1.0), tmp_path)
    (tmp_path / 'notes.txt').write_text('mine')
    write_report(empty_run, tmp_path)
    names = ['decisions.jsonl', 'notes.txt', 'report.html', 'report.json']
    assert sorted(content_of(tmp_path)) == names


@pytest.mark.parametrize('below', ['', 'deeper/still', 'a\0b'])
def test_a_place_that_takes_no_folder_is_an_error_with_a_remedy(empty_run, tmp_path, below):
    place = tmp_path / 'report'
    place.write_text('mine')
    with pytest.raises(ReportError, match='name a folder that can be written'):
        write_report(empty_run, place / below)
    assert place.read_text() == 'mine'


def test_a_disk_that_fills_up_leaves_the_old_report_and_nothing_half_written(
    build_run, empty_run, tmp_path
):
    write_report(empty_run, tmp_path)
    before = content_of(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limits[1]))
    try:
        with pytest.raises(ReportError, match='room for'):
            write_report(build_run(2.0), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert content_of(tmp_path) == before


def test_a_folder_that_is_not_used_after_all_is_not_left_behind(tmp_path):
    require_writable(tmp_path / 'a/b/c')
    assert list(tmp_path.iterdir()) == []
    (tmp_path / 'there').mkdir()
    require_writable(tmp_path / 'there/new')
    require_writable(tmp_path / 'there')
    assert [path.name for path in tmp_path.rglob('*')] == ['there']


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(ReportError, match='name another folder with --out'):
        require_writable(tmp_path / 'file/report')
    assert [path.name for path in tmp_path.iterdir()] == ['file']


@settings(deadline=None, max_examples=100)
@given(record=records)
def test_every_report_survives_json(record):
    report = report_of(record)
    text = json.dumps(report, allow_nan=False)
    assert json.loads(text) == report


def test_the_report_module_does_not_load_matplotlib():
    code = 'import sys, mmedge_ros.report.report; print("matplotlib" in sys.modules)'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == 'False'


def same_but_for_rounding(first, second):
    assert len(first.tracks) == len(second.tracks)
    for a, b in zip(first.tracks, second.tracks, strict=True):
        assert (a.id, a.label, a.seen_by) == (b.id, b.label, b.seen_by)
        assert np.allclose(a.position, b.position, atol=5.1e-5)
        assert np.allclose(a.velocity, b.velocity, atol=5.1e-5)
        assert np.allclose(a.covariance, b.covariance, atol=5.1e-9)
        assert np.allclose(a.box_velocity, b.box_velocity, atol=5.1e-3)
        assert (a.box is None) == (b.box is None)
        assert a.box is None or np.allclose(a.box, b.box, atol=5.1e-3)
    exact = ('window_end_ns', 'state_ns', 'published_ns', 'frame_id', 'newest_ns', 'trail')
    exact += ('configuration_ids', 'skipped', 'lost', 'late', 'degraded')
    for name in exact:
        assert getattr(first, name) == getattr(second, name), name


@settings(deadline=None, max_examples=60)
@given(given_decisions=st.lists(decisions, max_size=3))
def test_what_is_written_is_read_back_and_written_again_byte_for_byte(
    tmp_path_factory, given_decisions
):
    path = tmp_path_factory.mktemp('log') / 'decisions.jsonl'
    text = decision_lines(given_decisions)
    path.write_text(text)
    result = read_decisions(path)
    assert len(result) == len(given_decisions)
    for before, after in zip(given_decisions, result, strict=True):
        same_but_for_rounding(before, after)
    assert decision_lines(result) == text


def test_latency_and_ages_are_those_of_the_decision(build_run):
    decision = build_run(1.0).decisions[0]
    result = json.loads(decision_lines([decision]))
    assert result['latency_ms'] == pytest.approx(decision.latency * 1e3)
    assert result['ages_ms']['camera'] == pytest.approx(decision.ages['camera'] * 1e3)
    trail = result['trail']
    assert result['critical_age_ms'] == pytest.approx((trail[-1][2] - trail[0][1]) / 1e6)


def test_a_number_that_is_none_becomes_null_and_never_nan():
    covariance = np.full((6, 6), math.nan)
    place = np.array([math.inf, 0.0, -0.0])
    track = Track(1, 'person', math.nan, None, place, place, covariance, (), math.nan)
    text = decision_lines([Decision(0, 0, '', (track,), {})])
    result = json.loads(text, parse_constant=lambda name: pytest.fail(f'{name} in the file'))
    assert result['tracks'][0]['position'] == [None, 0.0, 0.0]
    assert '-0.0' not in text
    assert result['tracks'][0]['box'] is None
    assert result['critical_age_ms'] is None


def test_noise_below_the_rounding_does_not_change_the_file(build_run):
    decision = build_run(1.0).decisions[0]
    text = decision_lines([decision])
    for track in decision.tracks:
        track.position[:] = np.round(track.position, 4)
    rounded = decision_lines([decision])
    for track in decision.tracks:
        track.position[:] += 1e-9
    assert text == rounded == decision_lines([decision])
