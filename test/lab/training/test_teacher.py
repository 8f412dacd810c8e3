"""What a detector is sure of is taken to be true."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from painted_crossing import walker, write_crossing

from mmedge_lab.training.teacher import Teacher
from mmedge_lab.training.window_truth import window_truth
from mmedge_ros.core.data_types import Box, Detection
from mmedge_ros.encoding.detector import DetectorOutput, Image
from mmedge_ros.replay.recording import Recording


class Watcher:
    """Finds the same in each picture."""

    labels = ('person',)
    input_size = (320, 240)

    def __init__(self, result: Sequence[Detection]) -> None:
        self.found = tuple(result)

    def warm_up(self) -> None: ...

    def detect(self, image: Image) -> DetectorOutput:
        return DetectorOutput(self.found)


@pytest.fixture(scope='module')
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_crossing(tmp_path_factory.mktemp('t') / 'one', seconds=0.4, truth=False)


@pytest.fixture
def teach(monkeypatch: pytest.MonkeyPatch):
    def with_detections(*result: Detection) -> None:
        monkeypatch.setattr(
            'mmedge_lab.training.teacher.open_detector', lambda *_: Watcher(result)
        )

    return with_detections


SURE = Detection(Box(*walker(0.0, 0)[1].box), 0.8, 'person')


def test_sure_boxes_are_true_and_doubtful_ones_do_not_count(flight: Path, teach) -> None:
    doubtful = Detection(Box(100.0, 50.0, 120.0, 100.0), 0.2, 'person')
    teach(SURE, doubtful, Detection(Box(0.0, 0.0, 9.0, 9.0), 0.9, 'teapot'))
    with Recording(flight) as recording:
        truth = Teacher(Path('t'))(recording)
    assert len(truth.scenes) == 12
    stamp_ns = truth.stamps_ns[3]
    objects = window_truth(truth, [stamp_ns]).at(stamp_ns)
    assert objects.boxes[0].tolist() == pytest.approx(list(SURE.box), abs=0.01)
    assert objects.clear.tolist() == [True, False]
