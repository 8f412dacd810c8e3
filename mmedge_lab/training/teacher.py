"""Another detector whose scores are learned beside the labels, as soft targets.

It sees each picture just as the learner does, cut and spoilt (Hinton et al. 2015; Beyer et al.,
CVPR 2022). Its weights stay where they are: only what it makes of these pictures is learned.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training import TrainingError
from mmedge_lab.training.picture_sources import CLASSES
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.class_words import known_class
from mmedge_ros.encoding.detection_heads import YoloxHead, class_names, find_head


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

    def scores(self, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the scores of all cells and classes, NaN for classes it does not know.

        :param picture: (3, H, W) RGB, its sides multiples of 32
        :return: (cells, classes) in the order of `detector_training.cell_middles`
        """
        output = self._run(picture)
        taught = np.full((len(output), len(CLASSES)), np.nan, np.float32)
        for place, column in self._columns.items():
            taught[:, place] = output[:, 4] * output[:, column]
        return taught

    def _run(self, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        shown = np.ascontiguousarray(picture[::-1][None], np.float32)
        return np.asarray(self._session.run(None, {self._input: shown})[0][0], np.float32)
