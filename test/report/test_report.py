"""The report folder: its files, its keys, and what happens when it cannot be written."""

import json
import resource
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from decision_log_reader import read_decisions
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import ResultKind
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.report import ReportError
from mmedge_ros.report.report import report_of, write_report
from mmedge_ros.report.report_files import require_writable

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
