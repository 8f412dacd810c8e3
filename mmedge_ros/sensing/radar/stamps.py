"""When a radar frame was measured: back-dated from its arrival, smoothed over frame numbers.

A radar's frames come at even intervals, their bytes do not: a delay on the way (USB, a busy
machine) is never negative. So the earliest arrivals show where the even grid lies.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S

# Long enough that some frames of each half come without delay, even around a stall.
_MEMORY = 128
# Frames before the measured period is believed rather than the nominal one.
_ENOUGH = 16
# Quartz clocks agree far better; more is a nominal period that is not the radar's.
_TOLERANCE = 5e-3
# So many frames in a row that are late alike, by half a period or more: the radar has paused.
_LATE_FRAMES = 8
_LARGEST_JUMP_NS = 10 * NS_PER_S
# Arrivals may go back by what their known delays differ; more is a clock that was set.
_LARGEST_STEP_BACK_NS = NS_PER_S // 10


class FrameStamps:
    """Stamps of one radar's frames; forgets what it knows when the radar starts anew.

    :param period: nominal time between frames, s; 0 if not known
    """

    def __init__(self, period: float = 0.0) -> None:
        self.lost = 0
        self.restarts = 0
        self._nominal_ns = period * NS_PER_S
        self._known: deque[tuple[int, int]] = deque(maxlen=_MEMORY)
        self._late = 0
        self._first_delay_ns = 0
        self._newest_ns = 0

    def reset(self, period: float) -> None:
        """Begin anew with another nominal period, s; counts go on."""
        self._nominal_ns = period * NS_PER_S
        self._forget()

    def stamp(self, frame_number: int, measured_ns: int) -> int | None:
        """Return the smoothed instant of a frame; None for one that was there already.

        :param measured_ns: its arrival less all delays that are known
        """
        if self._known:
            number, last_ns = self._known[-1]
            step = frame_number - number
            if step == 0:
                return None
            if self._continues(step, measured_ns - last_ns):
                self.lost += step - 1
            else:
                self.restarts += 1
                self._forget()
        self._known.append((frame_number, measured_ns))
        period_ns = self._period_ns()
        stamp_ns = self._smoothed(period_ns)
        if self._has_moved(measured_ns - stamp_ns, period_ns):
            self._forget()
            self._known.append((frame_number, measured_ns))
            stamp_ns = measured_ns
        # Frames of one radar follow each other, whatever the estimate does.
        self._newest_ns = stamp_ns = max(stamp_ns, self._newest_ns + 1)
        return stamp_ns

    def _continues(self, step: int, elapsed_ns: int) -> bool:
        """Say whether a frame number can follow the last one after that time."""
        if step < 0 or not -_LARGEST_STEP_BACK_NS <= elapsed_ns <= _LARGEST_JUMP_NS:
            return False
        period_ns = self._nominal_ns
        # Bytes that waited somewhere arrive together: more frames than time, up to a point.
        return not period_ns or step * period_ns <= 2 * max(elapsed_ns, 0) + 10 * period_ns

    def _smoothed(self, period_ns: float) -> int:
        """Put the newest frame on the grid that the earliest of the remembered ones suggest."""
        number, measured_ns = self._known[-1]
        if not period_ns:
            return measured_ns
        return min(
            known_ns + round((number - known) * period_ns) for known, known_ns in self._known
        )

    def _period_ns(self) -> float:
        """Nominal period, or the measured one where the nominal is not true."""
        if len(self._known) < _ENOUGH:
            return self._nominal_ns
        numbers, times = np.array(self._known, np.int64).T
        times = times - times[0]
        half = len(numbers) // 2
        period_ns = self._nominal_ns or times[-1] / (numbers[-1] - numbers[0])
        # The earliest arrival of each half, as judged by a period that is better each time.
        for _ in range(3):
            late = times - numbers * period_ns
            first, second = int(np.argmin(late[:half])), half + int(np.argmin(late[half:]))
            period_ns = (times[second] - times[first]) / (numbers[second] - numbers[first])
        if abs(period_ns - self._nominal_ns) <= _TOLERANCE * self._nominal_ns:
            return self._nominal_ns
        return float(period_ns)

    def _has_moved(self, delay_ns: int, period_ns: float) -> bool:
        """Say whether so many frames were late alike that the grid itself must have moved.

        Bytes that waited somewhere arrive together, and so each is less late than the one before.
        """
        if not period_ns or 2 * delay_ns <= period_ns:
            self._late = 0
        elif self._late and abs(delay_ns - self._first_delay_ns) <= period_ns / 4:
            self._late += 1
        else:
            self._late, self._first_delay_ns = 1, delay_ns
        return self._late >= _LATE_FRAMES

    def _forget(self) -> None:
        self._known.clear()
        self._late = 0
        self._first_delay_ns = 0
        self._newest_ns = 0
