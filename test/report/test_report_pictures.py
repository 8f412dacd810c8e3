"""The pictures of a report are few and bounded, and moments show what their sentence says."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import bag_fixtures as flight
import cv2
import numpy as np
import pytest
from hand_made_truth import BOX, decided, film, moved, run, track, true_person
from PIL import Image

from mmedge_ros.core.data_types import NS_PER_S, Box, Decision, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report import report_pictures, timed_pictures
from mmedge_ros.report.report import write_report
from mmedge_ros.report.report_pictures import (
    KINDS,
    PICTURE_NAMES,
    RunPictures,
    moments_of,
    run_pictures,
)

FAR = moved(BOX, 200.0)
TRUTH = film(lambda ms: [true_person(1), true_person(2, FAR)])

PERIOD_NS = NS_PER_S // 20
COLOURED = 60


def walker(x0: float) -> Track:
    place = np.array([5.0, 0.0, 0.0])
    box = Box(x0, 12.0, x0 + 12.0, 36.0)
    return Track(1, 'person', 0.9, box, place, np.zeros(3), np.eye(6), ('camera',), 0.0)


def run_of(bag: Path, *, tracks: bool = True) -> RunRecord:
    """A run whose decisions show the box of the little recording."""
    with Recording(bag) as recording:
        stamps = recording.camera_stamps_ns()
    decisions = [
        Decision(
            stamp, stamp, 'base_link', (walker(8.0 + 2 * i),) if tracks else (), {},
            published_ns=stamp + PERIOD_NS // 2,
        )
        for i, stamp in enumerate(stamps[::2])
    ]  # fmt: skip
    return RunRecord(
        str(bag), 'offline', 0.05, 0.5, 0.1, decisions=decisions, camera_stamps_ns=stamps
    )


def pictures_of(bag: Path, **more: Any) -> RunPictures:
    return run_pictures(run_of(bag, **more), lambda: Recording(bag))


def written(tmp_path: Path, change: Any, seconds: float = 1.0) -> Path:
    """A recording whose list of messages was changed."""
    return flight.write_bag(tmp_path / 'bag', messages=change(flight.recording(seconds)))


def frames_in(webp: bytes) -> list[Any]:
    image = Image.open(io.BytesIO(webp))
    frames = []
    for number in range(getattr(image, 'n_frames', 1)):
        image.seek(number)
        frames.append(np.asarray(image.convert('RGB')).astype(int))
    return frames


def coloured(frame: Any) -> int:
    return int((np.ptp(frame, axis=2) > COLOURED).sum())


def test_a_report_has_an_animation_a_strip_and_moments(tmp_path: Path) -> None:
    bag = written(tmp_path, lambda messages: messages)
    pictures = pictures_of(bag)
    assert pictures.animation is not None
    assert pictures.strip is not None
    frames = frames_in(pictures.animation.webp)
    assert 9 <= len(frames) <= 10  # one second at 10 Hz
    assert {frame.shape for frame in frames} == {(360 + 20, 480, 3)}
    assert coloured(frames[0]) == 0 < coloured(frames[-1])  # nothing was known at first
    (strip,) = frames_in(pictures.strip.webp)
    assert strip.shape[1] == 3 * 400 + 2 * 6
    assert [moment.title.split(',')[0] for moment in pictures.moments] == [
        'Least certain place',
        'Slowest answer',
    ]
    assert coloured(frames_in(pictures.moments[0].webp)[0]) > 100
    assert pictures.absence == ''
    assert set(pictures.files) <= set(PICTURE_NAMES)


def test_only_the_pictures_that_are_shown_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bag = written(tmp_path, lambda messages: messages, seconds=8.0)
    decoded: list[int] = []
    decode = timed_pictures.decode_image
    monkeypatch.setattr(
        timed_pictures, 'decode_image', lambda m: (decoded.append(1), decode(m))[1]
    )
    pictures_of(bag)
    assert 50 <= len(decoded) <= 9 + 50 + 3 < 160


def test_a_damaged_picture_makes_room_for_the_next(tmp_path: Path) -> None:
    def damage(messages: Any) -> Any:
        compressed = [m for topic, _, m in messages if topic == flight.CAMERA_COMPRESSED]
        for message in compressed[5:9]:
            message.data = message.data[:100]
        return messages

    pictures = pictures_of(written(tmp_path, damage))
    assert pictures.animation is not None
    assert len(frames_in(pictures.animation.webp)) >= 7


def test_pictures_of_other_sizes_and_grey_ones_fit_into_the_same_frame(tmp_path: Path) -> None:
    def mix(messages: Any) -> Any:
        compressed = [m for topic, _, m in messages if topic == flight.CAMERA_COMPRESSED]
        for message in compressed[10:]:
            message.data = cv2.imencode('.jpg', np.full((300, 40), 90, np.uint8))[1]
        return messages

    pictures = pictures_of(written(tmp_path, mix))
    assert pictures.animation is not None
    last = frames_in(pictures.animation.webp)[-1]
    assert last.shape == (360 + 20, 480, 3)
    assert last[180, 100].max() < 20 < 60 < last[350, 240].min()  # black beside it


def test_a_single_picture_is_shown_once_and_does_not_move(tmp_path: Path) -> None:
    def one(messages: Any) -> Any:
        first = next(m for m in messages if m[0] == flight.CAMERA_COMPRESSED)
        return [m for m in messages if m[0] != flight.CAMERA_COMPRESSED or m is first]

    pictures = pictures_of(written(tmp_path, one))
    assert pictures.animation is None
    assert pictures.strip is not None
    assert pictures.strip.width == 400


@pytest.mark.parametrize('how', ['without a camera', 'all damaged', 'gone'])
def test_where_nothing_can_be_shown_a_sentence_says_so(tmp_path: Path, how: str) -> None:
    def change(messages: Any) -> Any:
        if how == 'without a camera':
            return [m for m in messages if m[0] in (flight.RADAR, flight.TF_STATIC)]
        for topic, _, message in messages:
            if topic == flight.CAMERA_COMPRESSED:
                message.data = message.data[:50]
        return messages

    bag = written(tmp_path, change)
    record = run_of(bag)
    path = tmp_path / 'nowhere' if how == 'gone' else bag
    pictures = run_pictures(record, lambda: Recording(path))
    assert pictures.files == {}
    assert pictures.absence.startswith('There ')
    assert pictures.absence.endswith('.')


def test_a_busy_animation_gets_less_quality_before_it_gets_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (48, 64, 3), np.uint8)

    def disturb(messages: Any) -> Any:
        for topic, _, message in messages:
            if topic == flight.CAMERA_COMPRESSED:
                message.data = cv2.imencode('.png', np.roll(noise, len(message.data)))[1]
        return messages

    bag = written(tmp_path, disturb)
    large = pictures_of(bag).animation
    monkeypatch.setattr(report_pictures, '_LARGEST_ANIMATION', 1)
    little = pictures_of(bag).animation
    assert large is not None
    assert little is not None
    assert len(little.webp) < 0.8 * len(large.webp)


def test_pictures_lie_beside_the_page_and_in_it_until_the_next_report(tmp_path: Path) -> None:
    bag = written(tmp_path, lambda messages: messages)
    record, out = run_of(bag), tmp_path / 'out'
    pictures = run_pictures(record, lambda: Recording(bag))
    write_report(record, out, pictures=pictures)
    page = (out / 'report.html').read_text()
    assert page.count('data:image/webp;base64,') == 4
    assert 'and whoever is in them' in page
    assert {file.name for file in out.glob('*.webp')} == set(pictures.files)
    write_report(replace(record, bag='another'), out)
    page = (out / 'report.html').read_text()
    assert 'image/webp' not in page
    assert 'No picture of anybody is in this report' in page
    assert list(out.glob('*.webp')) == []


def kinds(record):
    return {moment.kind: moment for moment in moments_of(record)}


def test_best_and_worst_are_chosen_by_the_truth():
    good = decided(200, track(1), track(2, FAR))
    lost = decided(400, track(1))
    false = decided(600, track(1), track(2, FAR), track(3, moved(BOX, -150.0)))
    moments = kinds(run([decided(100, track(1, moved(BOX, 4.0))), good, lost, false], TRUTH))
    assert moments['best'].decision is good
    assert '2 of 2 people in view have a track' in moments['best'].sentence
    assert '1.00' in moments['best'].sentence
    assert moments['missed'].decision.window_end_ns <= lost.window_end_ns
    assert '1 of 2 people in view have no track' in moments['missed'].sentence
    assert moments['false'].decision is false
    assert '1 of 3 boxes meet no person' in moments['false'].sentence


def test_people_without_a_track_in_the_first_second_are_not_the_worst():
    truth = film(lambda ms: [true_person(1), true_person(2, FAR)], end=2000)
    later = decided(1500, track(1))
    record = run([decided(100), later, decided(1600, track(1), track(2, FAR))], truth)
    assert kinds(record)['missed'].decision is later


def test_a_change_of_id_is_a_moment():
    first, second = decided(200, track(1)), decided(400, track(5))
    moments = kinds(run([first, second], film(lambda ms: [true_person(1)])))
    assert moments['renamed'].decision is second
    assert 'was track 1 before is track 5' in moments['renamed'].sentence


def test_what_did_not_occur_is_no_moment():
    record = run([decided(200, track(1), track(2, FAR))], TRUTH)
    assert set(kinds(record)) == {'best', 'slowest'}
    assert moments_of(run([], TRUTH)) == []
    assert moments_of(run([])) == []


def test_the_slowest_is_not_sought_in_the_warm_up():
    times = {100: 190, 200: 205, 300: 330, 400: 405}
    decisions = [decided(end, published=when) for end, when in times.items()]
    slowest = kinds(replace(run(decisions), warmup=1))['slowest']
    assert slowest.decision is decisions[2]
    assert '30.0 ms after its window' in slowest.sentence
    assert 'within 5.0 ms' in slowest.sentence


def test_without_truth_the_crowd_and_the_least_certain_place_are_shown():
    alone = decided(200, track(1, spread=4.0))
    crowd = decided(300, track(1), track(2, FAR), track(3, None, spread=100.0))
    moments = kinds(run([alone, crowd]))
    assert moments['crowded'].decision is crowd
    assert moments['crowded'].sentence.startswith('2 tracks')
    assert moments['uncertain'].decision is alone  # the third is not in the picture
    assert '2.8 m' in moments['uncertain'].sentence


@pytest.mark.parametrize('edge', [float('nan'), float('inf')])
def test_tracks_that_diverged_do_no_harm(edge):
    wild = track(1, Box(0.0, 0.0, edge, edge), spread=edge)
    for truth in (None, TRUTH):
        moments = moments_of(run([decided(100, wild)], truth))
        assert {moment.kind for moment in moments} <= set(KINDS)
