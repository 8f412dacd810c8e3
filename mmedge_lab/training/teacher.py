"""Another detector, whose scores and boxes are learned beside the labels.

It sees each picture just as the learner does, cut and spoilt (Hinton et al. 2015; Beyer et al.,
CVPR 2022). Its weights stay where they are: only what it makes of these pictures is learned.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training import TrainingError
from mmedge_lab.training.picture_sources import CLASSES
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.class_words import known_class
from mmedge_ros.encoding.detection_heads import YoloxHead, class_names, find_head


class Taught(NamedTuple):
    """What another detector says of each cell, in the order of `detector_training.cell_middles`.

    ``scores`` (B, cells, classes) are NaN where it knows nothing, ``boxes`` (B, cells, 4) are
    x0, y0, x1, y1 in px. Cells that learn a score alone would put boxes there that fit nobody.
    """

    scores: NDArray[np.float32]
    boxes: NDArray[np.float32]

    @classmethod
    def nothing(cls, pictures: int, cells: int) -> Taught:
        """Return what nobody has taught yet."""
        boxes = np.zeros((pictures, cells, 4), np.float32)
        return cls(np.full((pictures, cells, len(CLASSES)), np.nan, np.float32), boxes)


class Teacher:
    """A YOLOX network (ONNX), whose cells are those of the networks that are trained here.

    :raises TrainingError: if the file is none
    """

    def __init__(self, file: Path) -> None:
        import onnx
        import onnxruntime

        self.digest = sha256_of(file)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        try:
            model = onnx.load(file)
            port, answer = model.graph.input[0], model.graph.output[0]
            # Convolutions take any size; that of the export is written in the file alone.
            del model.graph.value_info[:]
            for place in (2, 3):
                port.type.tensor_type.shape.dim[place].dim_param = f'side {place}'
            answer.type.tensor_type.shape.dim[1].dim_param = 'cells'
            self._session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=['CPUExecutionProvider']
            )
            self._input = str(port.name)
            size = (96, 64)
            output = self._run(np.zeros((3, *size[::-1]), np.uint8))
            head = find_head(output[None], size, {}, str(file))
            if not isinstance(head, YoloxHead):
                raise ValueError(f'its output is {list(output.shape)}')
            names = class_names({}, head.classes, str(file))
            self._decoded = head.decoded
        except Exception as err:  # onnx and its runtime have errors of their own, of any kind
            raise TrainingError(
                f'{file} cannot teach ({str(err)[:200]}); name a YOLOX network as ONNX, such as '
                'that of `mmedge model fetch yolox_nano`'
            ) from err
        self._columns = {
            CLASSES.index(label): 5 + place
            for place, name in enumerate(names)
            if (label := known_class(name))
        }

    def look(self, picture: NDArray[np.uint8]) -> Taught:
        """Return what it says of one picture; classes it does not know have no score.

        :param picture: (3, H, W) RGB, its sides multiples of 32
        """
        output = self._run(picture)
        head = YoloxHead(picture.shape[:0:-1], output.shape[1] - 5, self._decoded)
        taught = Taught.nothing(1, len(output))
        for place, column in self._columns.items():
            taught.scores[0, :, place] = output[:, 4] * output[:, column]
        taught.boxes[0] = head.boxes(output, np.arange(len(output)))
        return taught

    def _run(self, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        shown = np.ascontiguousarray(picture[::-1][None], np.float32)
        return np.asarray(self._session.run(None, {self._input: shown})[0][0], np.float32)
