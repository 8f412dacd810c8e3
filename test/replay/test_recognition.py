"""A replay recognises tracks as the live graph does, and the same way every time."""

from __future__ import annotations

import pytest
from bag_fixtures import recording, write_bag
from tiny_detector import write_tiny_detector
from tiny_recogniser import write_tiny_recogniser

from mmedge_ros.core.device_profile import DeviceProfile, write_profile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.track_recognition import RecogniserParameters
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.report.report import decision_lines, report_of

STAGES = ('camera.encode', 'radar.encode', 'receipt.transport', 'features.transport', 'fusion')


@pytest.fixture(scope='module')
def options(tmp_path_factory: pytest.TempPathFactory) -> OfflineOptions:
    folder = tmp_path_factory.mktemp('flight')
    profile = folder / 'profile.yaml'
    write_profile(DeviceProfile('', dict.fromkeys(STAGES, (0.001,) * 6)), profile)
    bag = write_bag(folder / 'flight', messages=recording(2.0))
    detector = write_tiny_detector(folder / 'tiny.onnx')
    return OfflineOptions(str(bag), str(detector), profile=str(profile))


@pytest.fixture(scope='module')
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_recogniser(tmp_path_factory.mktemp('models') / 'tiny'))


def recognised(options: OfflineOptions, model: str) -> RunRecord:
    return replay_offline(
        OfflineOptions(
            options.bag,
            options.detector,
            profile=options.profile,
            recogniser=RecogniserParameters(model, memory=True),
        )
    )


def test_tracks_have_labels_and_what_is_new_is_in_the_record(
    options: OfflineOptions, model: str
) -> None:
    record = recognised(options, model)
    labels = [track.recognised for d in record.decisions for track in d.tracks if track.recognised]
    assert {label.label for label in labels} == {'person'}
    assert labels[-1].attributes[0] == 'blue'
    assert [novelty.reason for novelty in record.novelties] == ['the first person']
    report = report_of(record)['recognition']
    assert report is not None
    assert report['labels']['full'] == 1, 'later looks are recalled'
    assert report['labels']['memory'] >= 1
    assert report['labels']['reused'] > report['labels']['full'] + report['labels']['memory']
    assert report['novelties'][0]['label'] == 'person'


def test_two_replays_give_the_same_decisions_byte_for_byte(
    options: OfflineOptions, model: str
) -> None:
    first, second = (recognised(options, model) for _ in range(2))
    assert decision_lines(first.decisions) == decision_lines(second.decisions)


def test_recognising_changes_no_box_and_no_place(options: OfflineOptions, model: str) -> None:
    plain, with_labels = replay_offline(options), recognised(options, model)
    for one, other in zip(plain.decisions, with_labels.decisions, strict=True):
        assert [t.box for t in one.tracks] == [t.box for t in other.tracks]
        assert [t.position.tolist() for t in one.tracks] == [
            t.position.tolist() for t in other.tracks
        ]
