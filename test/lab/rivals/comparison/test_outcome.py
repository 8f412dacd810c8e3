"""What a policy leaves of a flight: dropped windows count, broken promises end everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bag_fixtures import write_bag
from fake_policies import run_fake
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.judging.bundle_under_test import (
    BundleUnderTest,
    open_bundle,
)
from mmedge_lab.judging.encoded_flight import EncodedFlight, encode_flight, load_flight
from mmedge_lab.policies.policy_run import PolicyRun
from mmedge_lab.rivals.comparison.outcome import Outcome, outcome_bytes, outcome_of, read_outcome
from mmedge_lab.rivals.comparison.plan import ComparisonCase
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.records.ground_truth import GroundTruth
from mmedge_ros.replay.recording import Recording

OURS = ComparisonCase('ours', 'stream', 100.0, 50.0)
BLOCKING = ComparisonCase('blocking', 'stream', 100.0, 50.0)


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> BundleUnderTest:
    return open_bundle(write_tiny_bundle(tmp_path_factory.mktemp('models') / 'tiny'), NOMINAL)


@pytest.fixture(scope='module')
def flight(bundle: BundleUnderTest, tmp_path_factory: pytest.TempPathFactory) -> EncodedFlight:
    path = write_bag(tmp_path_factory.mktemp('set') / 'f', messages=recording_with_truth(1.2))
    with Recording(path) as recording:
        result = load_flight(recording, PipelineParameters())
        wanted = {'camera': ('large',), 'radar': ('large',)}
        encode_flight(result, recording, bundle.encoders(), wanted)
    return result


@pytest.fixture(scope='module')
def ours(flight: EncodedFlight, bundle: BundleUnderTest) -> PolicyRun:
    return run_fake(OURS, flight, bundle)


def judged(run: PolicyRun, flight: EncodedFlight, limit: float = 0.05) -> Outcome:
    assert flight.truth is not None
    return outcome_of(run, flight.truth, limit)


def test_every_window_has_a_row_and_adds_up(ours: PolicyRun, flight: EncodedFlight) -> None:
    outcome = judged(ours, flight)
    count = len(ours.record.decisions)
    assert outcome.totals['windows'] == outcome.totals['decisions'] == count
    assert len(outcome.rows) == len(outcome.levels) == count
    assert set(outcome.levels) == {'large'}
    assert outcome.column('latency') == pytest.approx([d.latency for d in ours.record.decisions])
    assert outcome.totals['seconds'] == pytest.approx(0.1 * count)
    assert outcome.totals['calls_camera'] == outcome.totals['units_camera'] > 0
    assert np.isfinite(outcome.column('age_camera')).all()
    assert outcome.totals['stream_overlap'] > 0.0


def test_the_floor_is_what_a_window_waited_less_what_its_last_unit_lay_there(
    ours: PolicyRun, flight: EncodedFlight
) -> None:
    outcome = judged(ours, flight)
    floors, latencies = outcome.column('floor'), outcome.column('latency')
    known = np.isfinite(floors)
    assert known.any()
    assert (floors[known] <= latencies[known]).all()
    first = ours.schedule.decisions[-1]
    encoding = max(
        (e for e in ours.schedule.encodings if e.unit in {use.unit for use in first.uses}),
        key=lambda e: e.end_ns,
    )
    available = {(f.modality, f.sequence): f.available_ns for f in ours.record.features}
    idle = (encoding.begin_ns - available[encoding.unit]) / 1e9
    waited = 0.02 + idle
    delayed = replace(first, waited={encoding.modality: waited})
    schedule = replace(ours.schedule, decisions=(*ours.schedule.decisions[:-1], delayed))
    changed = judged(replace(ours, schedule=schedule), flight)
    assert changed.column('floor')[-1] == pytest.approx(0.02)


def test_samples_of_the_stream_belong_to_the_stride_before_a_window_end(
    ours: PolicyRun, flight: EncodedFlight
) -> None:
    outcome = judged(ours, flight)
    # One person, asked every 10 ms: 10 times in each stride.
    assert outcome.column('streamed').max() == 10.0
    assert outcome.column('streamed').sum() <= outcome.totals['streamed']
    assert outcome.column('stream_overlap').sum() <= outcome.totals['stream_overlap'] + 1e-9


def test_people_in_dropped_windows_are_missed(
    ours: PolicyRun, flight: EncodedFlight, bundle: BundleUnderTest
) -> None:
    blocking = run_fake(BLOCKING, flight, bundle)
    assert blocking.schedule.dropped
    full, gaps = judged(ours, flight), judged(blocking, flight)
    assert gaps.totals['people'] == full.totals['people']
    assert gaps.totals['overlap'] < full.totals['overlap']
    assert gaps.totals['windows'] == full.totals['windows']
    assert (gaps.column('overlap')[gaps.column('decided') == 0.0] == 0.0).all()
    assert gaps.column('people').sum() == full.column('people').sum()


def test_a_policy_that_drops_every_window_scores_zero_instead_of_no_figure(
    ours: PolicyRun, flight: EncodedFlight
) -> None:
    ends = tuple(decision.window_end_ns for decision in ours.schedule.decisions)
    schedule = replace(ours.schedule, decisions=(), dropped=ends)
    nothing = PolicyRun(schedule, replace(ours.record, decisions=[]), {}, 1.0, 10.0)
    outcome = judged(nothing, flight)
    assert outcome.totals['people'] == judged(ours, flight).totals['people'] > 0
    assert outcome.totals['overlap'] == outcome.totals['stream_overlap'] == 0.0
    assert outcome.totals['dropped'] == len(ends)


def test_decisions_after_the_limit_are_counted(ours: PolicyRun, flight: EncodedFlight) -> None:
    assert judged(ours, flight, 0.05).totals['misses'] == 0
    assert judged(ours, flight, 0.0001).totals['misses'] == len(ours.record.decisions)


def test_a_broken_promise_makes_every_figure_worthless(
    ours: PolicyRun, flight: EncodedFlight
) -> None:
    broken = replace(ours, violations=('camera 3 was used 4 ms before it was there',))
    with pytest.raises(EvaluationError, match=r'ours .* broke its promise.*before it was there'):
        judged(broken, flight)


def test_without_ground_truth_there_is_nothing_to_judge_by(ours: PolicyRun) -> None:
    with pytest.raises(EvaluationError, match='ground truth is needed'):
        outcome_of(ours, GroundTruth((), ()), 0.05)


def test_an_outcome_is_read_back_as_it_was(ours: PolicyRun, flight: EncodedFlight) -> None:
    outcome = judged(ours, flight)
    content = outcome_bytes(outcome, 'key')
    result = read_outcome(content, 'key')
    assert result is not None
    assert result.totals == outcome.totals
    assert result.levels == outcome.levels
    np.testing.assert_array_equal(result.rows, outcome.rows)
    assert set(result.figures.sums) == set(outcome.figures.sums)
    assert read_outcome(content, 'of another flight') is None


@pytest.fixture(scope='module')
def content(ours: PolicyRun, flight: EncodedFlight) -> bytes:
    return outcome_bytes(judged(ours, flight), 'key')


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_no_outcome(data: st.DataObject, content: bytes) -> None:
    place = data.draw(st.integers(0, len(content) - 1))
    flipped = bytes([content[place] ^ data.draw(st.integers(1, 255))])
    rest = data.draw(st.sampled_from([b'', content[place + 1 :]]))
    assert read_outcome(content[:place] + flipped * bool(rest) + rest, 'key') is None


def test_something_else_is_no_outcome() -> None:
    assert read_outcome(b'', 'key') is None
    assert read_outcome(b'x' * 100, 'key') is None
