"""A training that says when its second epoch has begun, and then waits to be killed.

python train_until_killed.py PICTURES OUT
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from mmedge_lab.training.detector_session import train_detector
from mmedge_lab.training.detector_training import DetectorSettings

TINY = DetectorSettings(
    size=(160, 128),
    crop=(96, 96),
    epochs=2,
    batch=8,
    seed=3,
    threads=1,
)


def report(share: float, words: str) -> None:
    if words.startswith('epoch 2 '):
        print('second epoch', flush=True)
        signal.pause()


if __name__ == '__main__':
    train_detector(Path(sys.argv[1]), Path(sys.argv[2]), report, settings=TINY)
