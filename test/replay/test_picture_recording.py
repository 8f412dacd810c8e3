"""Videos and folders of pictures as recordings of a camera."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from camera_fakes import picture
from mp4_files import write_mp4

from mmedge_ros.core.data_types import CAMERA, NS_PER_S
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.picture_recording import (
    BEGIN_NS,
    FRAME_ID,
    LONGEST_SIDE,
    PictureParameters,
    holds_pictures,
)
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing.camera.image import decode_image

MS = 1_000_000
SECONDS = [0.02, 0.1, 0.05, 0.03]
STAMPS_NS = [BEGIN_NS + ms * MS for ms in (0, 20, 120, 170)]
CALIBRATION = """
image_width: {width}
image_height: {height}
camera_matrix: {{rows: 3, cols: 3, data: [2000, 0, 1000, 0, 2000, 500, 0, 0, 1]}}
"""


@pytest.fixture
def video(tmp_path: Path) -> Path:
    path = tmp_path / 'phone.mp4'
    write_mp4(path, [picture(20 * n, 48, 64) for n in range(4)], SECONDS, turn=90)
    return path


def folder_of(path: Path, count: int = 4) -> Path:
    path.mkdir()
    for number in range(count):
        cv2.imwrite(str(path / f'{number}.png'), picture(20 * number))
    return path


def test_a_video_is_a_recording_of_a_camera_alone(video: Path) -> None:
    with Recording(video) as recording:
        assert recording.modalities == (CAMERA,)
        assert not recording.is_simulated
        units = list(recording.units())
        assert [unit.stamp_ns for unit in units] == STAMPS_NS
        assert [unit.available_ns for unit in units] == STAMPS_NS
        assert {unit.frame_id for unit in units} == {FRAME_ID}
        pictures = [decode_image(unit.payload) for unit in units]
        assert [p.shape for p in pictures] == [(64, 48, 3)] * 4
        assert [int(p.mean()) for p in pictures] == pytest.approx([0, 20, 40, 60], abs=2)
        assert recording.camera_stamps_ns() == STAMPS_NS
        assert recording.arrivals_ns() == (STAMPS_NS[0], STAMPS_NS[-1])
        assert recording.bag.end_ns == STAMPS_NS[-1]


def test_times_are_known_before_and_after_the_pictures_were_read(video: Path) -> None:
    with Bag(video) as bag:
        topics = [topic.name for topic in bag.topics]
        before = [stamp.stamp_ns for stamp in bag.stamps(topics)]
        messages = list(bag.messages(topics))
        assert [stamp.stamp_ns for stamp in bag.stamps(topics)] == before == STAMPS_NS
    assert [message.log_ns for message in messages] == sorted(STAMPS_NS * 2)


def test_a_folder_of_pictures_has_the_rate_that_is_given(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / 'pictures')
    with Recording(folder, pictures=PictureParameters(fps=10.0)) as recording:
        assert recording.periods_ns == {CAMERA: NS_PER_S // 10}
        stamps = [unit.stamp_ns - BEGIN_NS for unit in recording.units()]
    assert stamps == [0, 100 * MS, 200 * MS, 300 * MS]


def test_a_damaged_picture_is_noted_and_its_frame_number_kept(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / 'pictures')
    (folder / '1.png').write_bytes(b'\x89PNG\r\n\x1a\n')
    with Recording(folder) as recording:
        assert len(list(recording.units())) == 3
        assert len(recording.camera_stamps_ns()) == 4
        assert any('a picture was left out: 1.png' in text for text in recording.bag.problems)


# ------------------------------------------------------------------------- intrinsics


def test_nominal_intrinsics_span_the_longer_side_and_are_said_to_be_a_guess(
    video: Path,
) -> None:
    with Recording(video, pictures=PictureParameters(fov=90.0)) as recording:
        camera = recording.camera
        assert camera is not None
        assert (camera.width, camera.height) == (48, 64)
        upper, lower = camera.bearing([(23.5, -0.5), (23.5, 63.5)])
        assert np.degrees(np.arccos(upper @ lower)) == pytest.approx(90.0)
        assert any(
            '90 degrees across the longer side' in text and 'guesses' in text
            for text in recording.problems
        )


def test_large_pictures_are_scaled_and_a_calibration_with_them(tmp_path: Path) -> None:
    path, calibration = tmp_path / 'large.mp4', tmp_path / 'camera.yaml'
    write_mp4(path, [picture(40, 2 * LONGEST_SIDE, 1000)], [0.1])
    calibration.write_text(CALIBRATION.format(width=2 * LONGEST_SIDE, height=1000))
    with Recording(path, calibration=str(calibration)) as recording:
        assert recording.picture_scale == 2.0
        payload = next(recording.units()).payload
        assert (payload.width, payload.height) == (LONGEST_SIDE, 500)
        camera = recording.camera
        assert camera is not None
        assert (camera.width, camera.height, camera.k[0, 0]) == (LONGEST_SIDE, 500, 1000.0)
        given = read_calibration(calibration).camera
        assert given is not None
        # The same spot of the picture lies in the same direction.
        assert camera.bearing([(99.5, 49.5)]) == pytest.approx(given.bearing([(199.5, 99.5)]))
        assert not any('--fov' in text for text in recording.problems)


# ------------------------------------------------------------------------- what is what


def test_what_is_read_as_pictures(tmp_path: Path, video: Path) -> None:
    pictures, bag, mixed = folder_of(tmp_path / 'p'), tmp_path / 'b', folder_of(tmp_path / 'm')
    bag.mkdir()
    (bag / 'metadata.yaml').touch()
    (bag / 'preview.png').touch()
    (mixed / 'flight.mcap').touch()
    assert holds_pictures(video)
    assert holds_pictures(pictures)
    assert not holds_pictures(bag)
    assert not holds_pictures(mixed)
    assert not holds_pictures(tmp_path / 'gone.mp4')
    assert not holds_pictures(tmp_path / 'gone.mcap')


def test_the_pictures_of_a_report_are_no_recording(tmp_path: Path) -> None:
    for name in ('report.json', 'strip.webp'):
        (tmp_path / name).touch()
    with pytest.raises(BagError, match='name the recording that was replayed'):
        Bag(tmp_path)


def test_what_is_neither_recording_nor_pictures_is_refused_with_both_in_the_message(
    tmp_path: Path,
) -> None:
    text, empty = tmp_path / 'notes.txt', tmp_path / 'empty'
    text.write_text('no video')
    empty.mkdir()
    with pytest.raises(BagError, match=r'notes.txt cannot be read as a video.*no recording'):
        Bag(text)
    with pytest.raises(BagError, match=r'no .mcap or .db3 file, and no pictures'):
        Bag(empty)
    with pytest.raises(BagError, match=r'does not exist.*a video file'):
        Bag(tmp_path / 'gone.mp4')
