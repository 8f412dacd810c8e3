"""A program that loads a stand-in for a model, names its process, and waits."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from fake_model_process import COMMAND

from mmedge_ros.questions.model_server import ModelFiles, ModelServer

if __name__ == '__main__':
    server = ModelServer(ModelFiles(Path(sys.argv[1])), command=(*COMMAND, 'answers'))
    server.start(time.monotonic() + 30.0)
    print(server.pid, flush=True)
    signal.pause()
