"""What became of the looks of a stream, and the figures of several rows on the same streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.flight_bootstrap import Drawings
from mmedge_lab.judging.flight_sums import Figure, SummedFlights, Sums
from mmedge_lab.rivals.smtm.methods import Method
from mmedge_lab.rivals.smtm.streams import Stream
from mmedge_lab.rivals.smtm.subject import Subject
from mmedge_ros.data_types import FloatArray

FIGURES: Mapping[str, Figure] = {
    'accuracy': Figure('right', 'looks'),
    'saved': Figure('seconds', 'whole', 1.0, -1.0),
    'early': Figure('early', 'looks'),
}


class StreamRun(NamedTuple):
    """T looks: whether they were ``right``, ``stages`` that ran, ``seconds``, and hot classes."""

    right: NDArray[np.bool_]
    stages: NDArray[np.int64]
    seconds: FloatArray
    hot: NDArray[np.int64]

    def sums(self, stage_seconds: FloatArray) -> Sums:
        """Return what `FIGURES` are quotients of; ``exit_k`` counts looks with k stages."""
        looks, stages = len(self.right), len(stage_seconds)
        exits = np.bincount(self.stages, minlength=stages + 1)
        return {
            'looks': float(looks),
            'right': float(self.right.sum()),
            'early': float(exits[1:stages].sum()),
            'seconds': float(self.seconds.sum()),
            'whole': float(looks * stage_seconds.sum()),
            **{f'exit_{number}': float(count) for number, count in enumerate(exits)},
        }


def run_stream(method: Method, stream: Stream, subject: Subject) -> StreamRun:
    """Recognise a stream.

    What was spent besides the stages counts as the median over looks with as many stages, because
    single looks meet whatever else the machine does.
    """
    rows = stream.rows + stream.levels * len(subject.crops.labels)
    answers, hot = [], []
    for row, track in zip(rows.tolist(), stream.tracks.tolist(), strict=True):
        answers.append(method.look(row, track))
        hot.append(method.hot)
    labels, ran, besides, reused = (np.array(part) for part in zip(*answers, strict=True))
    for count in np.unique(ran):
        besides[ran == count] = np.median(besides[ran == count])
    up_to = np.concatenate(([0.0], np.cumsum(subject.kept.stage_seconds)))
    seconds = up_to[ran] * (1.0 - reused) + besides
    return StreamRun(labels == subject.labels[rows], ran, seconds, np.array(hot))


def figures_of(
    runs: Mapping[str, Sequence[StreamRun]], stage_seconds: FloatArray, watts: float, full: str
) -> dict[str, dict[str, Any]]:
    """Return the figures of each row on the streams of several seeds, intervals drawn by seed.

    ``lost`` is the accuracy of the row ``full`` less its own; ``ms`` is the time of a look,
    ``mj_saved`` what that saves beside the whole classifier at so many watts, a model.
    ``exits[k]`` is the share of looks with k stages.
    """
    sums = {name: [run.sums(stage_seconds) for run in of] for name, of in runs.items()}
    seeds = range(len(next(iter(runs.values()))))
    summed = SummedFlights(sums, Drawings.of(seeds), FIGURES)
    report: dict[str, dict[str, Any]] = {}
    for name in runs:
        looks = summed.total(name, 'looks')
        seconds = summed.total(name, 'seconds') / looks
        difference = summed.difference(full, name, 'accuracy')
        report[name] = {
            **{figure: summed.estimate(name, figure)._asdict() for figure in FIGURES},
            'lost': difference._asdict(),
            'ms': 1e3 * seconds,
            'mj_saved': 1e3 * watts * (float(stage_seconds.sum()) - seconds),
            'exits': [
                summed.total(name, f'exit_{number}') / looks
                for number in range(len(stage_seconds) + 1)
            ],
        }
    return report
