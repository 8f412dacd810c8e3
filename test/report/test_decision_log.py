"""The decision log, written and read back."""

import json
import math

import numpy as np
import pytest
from decision_log_reader import read_decisions
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box, Decision, StageTiming, Track
from mmedge_ros.report.decision_log import decision_lines

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
