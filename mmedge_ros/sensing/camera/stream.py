"""A camera that runs by itself: a thread reads it and keeps the newest picture."""

from __future__ import annotations

import threading

from mmedge_ros.sensing.camera.device import CameraFrame
from mmedge_ros.sensing.camera.reader import CameraReader

_PATIENCE = 1.0


class CameraStream:
    """Runs a CameraReader in a thread of its own.

    One picture waits at most: when the next one comes before anybody took it, it is dropped
    and counted, because a fresh picture is worth more than an old one.

    :param ended: set to make waiting parts of the reader come back at once
    """

    def __init__(self, reader: CameraReader, ended: threading.Event) -> None:
        self.reader = reader
        self._ended = ended
        self._newest: CameraFrame | None = None
        self._arrived = threading.Condition()
        self._thread = threading.Thread(target=self._run, name='camera', daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that a driver holds up is left to end with the process."""
        self._ended.set()
        with self._arrived:
            self._arrived.notify_all()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def take(self, timeout: float) -> CameraFrame | None:
        """Return the newest picture and forget it; wait for one, but not longer than that."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._newest or self._ended.is_set(), timeout)
            frame, self._newest = self._newest, None
            self.reader.counts.transferred += frame is not None
            return frame

    def put(self, frame: CameraFrame) -> None:
        """Hand over a picture."""
        with self._arrived:
            if self._newest is not None:
                self.reader.counts.dropped += 1
            self._newest = frame
            self._arrived.notify()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                step = self.reader.step()
                if step.frame is not None:
                    self.put(step.frame)
                elif step.pause:
                    self._ended.wait(step.pause)
        finally:
            self.reader.close()
