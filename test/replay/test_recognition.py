"""A replay recognises tracks as the live graph does, and the same way every time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bag_fixtures import recording, write_bag
from tiny_recogniser import write_tiny_recogniser

from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.track_recognition import RecogniserParameters
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.report.report import decision_lines, report_of


@pytest.fixture(scope='module')
def options(
    tmp_path_factory: pytest.TempPathFactory, detector: Path, profile: Path
) -> OfflineOptions:
    bag = write_bag(tmp_path_factory.mktemp('flight') / 'flight', messages=recording(2.0))
    return OfflineOptions(str(bag), str(detector), profile=str(profile))


@pytest.fixture(scope='module')
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_recogniser(tmp_path_factory.mktemp('models') / 'tiny'))


@pytest.fixture(scope='module')
def recognised(options: OfflineOptions, model: str) -> RunRecord:
    return replay_offline(_with_labels(options, model))


def _with_labels(options: OfflineOptions, model: str) -> OfflineOptions:
    return replace(options, recogniser=RecogniserParameters(model, memory=True))


def test_tracks_have_labels_and_what_is_new_is_in_the_record(recognised: RunRecord) -> None:
    labels = [
        track.recognised for d in recognised.decisions for track in d.tracks if track.recognised
    ]
    assert {label.label for label in labels} == {'person'}
    assert labels[-1].attributes[0] == 'blue'
    assert [novelty.reason for novelty in recognised.novelties] == ['the first person']
    report = report_of(recognised)['recognition']
    assert report is not None
    assert report['labels']['full'] == 1, 'later looks are recalled'
    assert report['labels']['memory'] >= 1
    assert report['labels']['reused'] > report['labels']['full'] + report['labels']['memory']
    assert report['novelties'][0]['label'] == 'person'


def test_two_replays_give_the_same_decisions_byte_for_byte(
    options: OfflineOptions, model: str, recognised: RunRecord
) -> None:
    again = replay_offline(_with_labels(options, model))
    assert decision_lines(again.decisions) == decision_lines(recognised.decisions)


def test_recognising_changes_no_box_and_no_place(
    options: OfflineOptions, recognised: RunRecord
) -> None:
    plain = replay_offline(options)
    for one, other in zip(plain.decisions, recognised.decisions, strict=True):
        assert [t.box for t in one.tracks] == [t.box for t in other.tracks]
        assert [t.position.tolist() for t in one.tracks] == [
            t.position.tolist() for t in other.tracks
        ]
