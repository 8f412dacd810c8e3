"""A camera from opening to loss and back, picture by picture, on a clock made by hand."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest
from camera_fakes import BEGIN_NS, MS, SECOND, FakeDevice, calibration, picture
from virtual_clock import VirtualClock

from mmedge_ros.core.data_types import CAMERA, Configuration, ModalityConfiguration, SkipDecision
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.device import BGR, JPEG, CameraFrame, CameraParameters, Shot
from mmedge_ros.sensing.camera.reader import CameraReader, RateMeter
from mmedge_ros.sensing.capture_control import CaptureControl

RAW = CameraParameters()
COMPRESSED = CameraParameters(image_transport='compressed')


class Bench:
    """A reader, its clock, and devices that an opener hands out in turn."""

    def __init__(self, parameters: CameraParameters = RAW, **options: object) -> None:
        self.clock = VirtualClock(BEGIN_NS)
        self.waiting: list[FakeDevice] = []
        self.said: list[str] = []
        self.control = CaptureControl(CAMERA)
        self.reader = CameraReader(
            self._open,
            parameters,
            self.control,
            self.clock,
            say=self.said.append,
            **options,  # type: ignore[arg-type]
        )

    def _open(self) -> FakeDevice:
        if not self.waiting:
            raise SensingError('no camera is there')
        return self.waiting.pop(0)

    def plug(self, **options: object) -> FakeDevice:
        device = FakeDevice(self.clock, **options)  # type: ignore[arg-type]
        self.waiting.append(device)
        return device

    def run(self, steps: int) -> list[CameraFrame]:
        """Make steps, and the pauses they ask for."""
        frames = []
        for _ in range(steps):
            step = self.reader.step()
            self.clock.advance_to(self.clock.now_ns() + round(step.pause * SECOND))
            if step.frame is not None:
                frames.append(step.frame)
        return frames

    def run_until(self, condition: Callable[[], bool]) -> list[CameraFrame]:
        frames: list[CameraFrame] = []
        for _ in range(1000):
            if condition():
                return frames
            frames += self.run(1)
        raise AssertionError('it never came to that')


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_camera_is_opened_and_its_pictures_carry_both_times(bench: Bench) -> None:
    bench.plug()
    frames = bench.run(4)
    assert [f.available_ns - f.stamp_ns for f in frames] == [10 * MS] * 3
    assert [f.available_ns - BEGIN_NS for f in frames] == [50 * MS, 100 * MS, 150 * MS]
    assert (frames[0].encoding, frames[0].width, frames[0].height) == (BGR, 64, 48)
    assert bench.said == ['the fake is open: 64 x 48 px at 20 Hz MJPG']
    assert (bench.reader.problems(), bench.reader.is_failing()) == ([], False)


def test_pictures_are_handed_over_without_a_copy(bench: Bench) -> None:
    original = picture()
    bench.plug(shots=[Shot(BGR, original)])
    (frame,) = bench.run(2)
    assert frame.image is original


def test_a_camera_that_is_not_there_is_tried_ever_less_often_and_told_once(bench: Bench) -> None:
    pauses = [bench.reader.step().pause for _ in range(6)]
    assert pauses == [0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    assert bench.said == ['no camera is there; trying again until it is there']
    assert bench.reader.problems() == ['no camera is there']
    assert bench.reader.is_failing()


def test_a_camera_that_is_put_back_goes_on_within_two_seconds(bench: Bench) -> None:
    device = bench.plug()
    bench.run(5)
    device.is_plugged = False
    bench.run(1)
    assert device.is_closed
    assert bench.reader.is_failing()
    assert bench.reader.problems() == ['the fake sends no more pictures']
    bench.run(8)
    bench.plug()
    put_back_ns = bench.clock.now_ns()
    frames = bench.run_until(lambda: not bench.reader.is_failing())
    frames += bench.run(1)
    assert frames[0].available_ns - put_back_ns < 2 * SECOND
    assert bench.reader.counts.losses == 1
    assert [text.split()[-1] for text in bench.said] == ['MJPG', 'pictures', 'there', 'MJPG']


def test_one_that_opens_but_sends_nothing_is_not_hammered_and_fills_no_log(bench: Bench) -> None:
    pauses = []
    for _ in range(10):
        bench.plug().is_plugged = False
        pauses += [step.pause for step in (bench.reader.step(), bench.reader.step())]
    assert pauses[1::2] == [0.2, 0.4, 0.8] + [1.0] * 7
    assert len(bench.said) == 2


def test_silence_is_told_while_the_driver_still_hangs(bench: Bench) -> None:
    bench.plug()
    bench.run(3)
    bench.clock.advance_to(bench.clock.now_ns() + 400 * MS)
    assert not bench.reader.is_failing()
    bench.clock.advance_to(bench.clock.now_ns() + 300 * MS)
    assert bench.reader.is_failing()
    assert bench.reader.problems() == ['the fake has sent no picture for 0.7 s']


def test_the_pace_of_a_slow_camera_is_no_silence(bench: Bench) -> None:
    bench.plug(period_ms=1000.0, rate=1.0)
    bench.run(3)
    bench.clock.advance_to(bench.clock.now_ns() + 2900 * MS)
    assert bench.reader.problems() == []


def test_a_rate_that_falls_short_is_told_after_two_seconds(bench: Bench) -> None:
    bench.plug(period_ms=100.0, rate=30.0)
    bench.run(15)
    assert bench.reader.problems() == []
    bench.run(10)
    (problem,) = bench.reader.problems()
    assert problem.startswith('the fake delivers 10.0 Hz instead of 30.0: in dim light')
    assert not bench.reader.is_failing()


def test_the_end_of_a_file_is_no_loss(bench: Bench) -> None:
    device = bench.plug()
    bench.run(3)
    device.has_ended = True
    assert bench.run(5) == []
    assert bench.reader.problems() == ['the fake has ended']
    assert bench.said[1:] == ['the fake has ended']
    assert bench.reader.counts.losses == 0


# ------------------------------------------------------------------------------ obedience


def test_pictures_above_the_configured_rate_are_not_even_decoded(bench: Bench) -> None:
    device = bench.plug()
    part = ModalityConfiguration(CAMERA, 5.0)
    bench.control.schedule.add(Configuration(3, BEGIN_NS + SECOND, (part,)))
    frames = bench.run(61)
    late = [f for f in frames if f.stamp_ns >= BEGIN_NS + SECOND]
    assert len(frames) - len(late) == 20
    assert 9 <= len(late) <= 11
    counts = bench.reader.counts
    assert (counts.captured, device.retrieved) == (60, len(frames))
    assert counts.thinned == 60 - len(frames)


def test_a_lease_pauses_the_camera_and_runs_out_by_itself(bench: Bench) -> None:
    bench.plug()
    bench.run(10)
    now_ns = bench.clock.now_ns()
    bench.control.lease(SkipDecision(CAMERA, now_ns, now_ns + 300 * MS, now_ns))
    frames = bench.run(10)
    assert frames[0].stamp_ns >= now_ns + 300 * MS
    assert bench.reader.counts.skipped == 6
    assert bench.reader.problems() == []


def test_missed_pictures_are_counted_as_captured(bench: Bench) -> None:
    bench.plug().missed = 2
    bench.run(3)
    assert (bench.reader.counts.captured, bench.reader.counts.missed) == (6, 4)


# ------------------------------------------------------------------------------ pictures


def jpeg(shade: int = 40) -> bytes:
    done, data = cv2.imencode('.jpg', picture(shade))
    assert done
    return data.tobytes()


def test_what_the_camera_compressed_is_passed_through() -> None:
    bench = Bench(COMPRESSED)
    sent = jpeg()
    bench.plug(shots=[Shot(JPEG, sent)])
    (frame,) = bench.run(2)
    assert frame.image is sent
    assert (frame.encoding, frame.width, frame.height) == (JPEG, 64, 48)


def test_what_it_did_not_compress_is_compressed_where_that_is_wanted() -> None:
    bench = Bench(COMPRESSED)
    bench.plug(shots=[Shot(BGR, picture(90))])
    (frame,) = bench.run(2)
    assert frame.encoding == JPEG
    decoded = cv2.imdecode(np.frombuffer(frame.image, np.uint8), cv2.IMREAD_COLOR)
    assert abs(int(decoded.mean()) - 90) <= 1


def test_what_it_compressed_is_decoded_where_raw_pictures_are_wanted(bench: Bench) -> None:
    bench.plug(shots=[Shot(JPEG, jpeg(90))])
    (frame,) = bench.run(2)
    assert frame.encoding == BGR
    assert abs(int(np.mean(frame.image)) - 90) <= 1


def test_a_damaged_picture_is_left_out_and_counted(bench: Bench) -> None:
    bench.plug(shots=[Shot(JPEG, jpeg()[:-40]), SensingError('damaged'), Shot(BGR, picture())])
    assert len(bench.run(4)) == 1
    assert bench.reader.counts.damaged == 2
    assert bench.reader.problems() == []


def test_ten_damaged_pictures_in_a_row_are_a_loss(bench: Bench) -> None:
    device = bench.plug(shots=[SensingError('torn')] * 10)
    bench.run(11)
    assert device.is_closed
    assert bench.reader.problems() == ['10 pictures in a row: torn']


# ------------------------------------------------------------------------------ calibration


def test_the_device_knows_its_calibration(bench: Bench) -> None:
    own = calibration()
    bench.plug(calibration=own)
    bench.run(2)
    assert bench.reader.calibration is own


def test_a_given_calibration_takes_its_place() -> None:
    given = calibration()
    bench = Bench(calibration=given)
    bench.plug(calibration=calibration())
    bench.run(2)
    assert bench.reader.calibration is given


def test_a_calibration_for_another_size_is_told_and_not_used() -> None:
    bench = Bench(calibration=calibration(1280, 720))
    bench.plug()
    bench.run(2)
    assert bench.reader.calibration is None
    (problem,) = bench.reader.problems()
    assert problem.startswith('the calibration is for 1280 x 720 px, the pictures have 64 x 48')


def test_what_was_not_granted_is_told(bench: Bench) -> None:
    bench.plug().notes = ('30 Hz were asked for, it offers 20 Hz',)
    bench.run(2)
    assert bench.reader.problems() == ['the fake: 30 Hz were asked for, it offers 20 Hz']


# ------------------------------------------------------------------------------ rate


def test_the_rate_is_that_of_the_last_two_seconds() -> None:
    meter = RateMeter()
    assert (meter.rate, meter.is_settled) == (0.0, False)
    for number in range(100):
        meter.add(number * 100 * MS)
    for number in range(100):
        meter.add(10 * SECOND + number * 50 * MS)
    assert meter.rate == pytest.approx(20.0)
    assert meter.is_settled
    meter.reset()
    assert (meter.rate, meter.is_settled) == (0.0, False)
