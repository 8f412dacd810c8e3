"""An encoder that holds units until their window ends, and encodes them then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mmedge_ros.core.data_types import (
    NS_PER_S,
    Unit,
    UnitFeatures,
    UnitOutcome,
    extend_trail,
)
from mmedge_ros.core.run_record import count_failure
from mmedge_ros.encoding import EncodingError
from mmedge_ros.pipeline.encoder_worker import EncoderWorker
from mmedge_ros.pipeline.unit_intake import Admitted, receipt_of
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.sensing import SensingError

_LONGEST_WAIT, _SHORTEST_WAIT = 1.0, 0.0002
_WINDOWS = WindowParameters()


class WindowEncoderWorker(EncoderWorker):
    """Encodes all units of a window when that has ended, those of windows before once more.

    While it is busy windows end; of these it takes the newest, so that the others are dropped.
    Features leave when the whole window is encoded, each unit's once, the newest first: a window
    that was dropped is complete no earlier than the one after it. The trail of a unit says
    `queue` until its window is begun, and `encode` until the whole window is encoded.
    """

    encodes_anew = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._held: list[Admitted] = []
        self._published: set[int] = set()
        self._done_ns = 0

    def offer(self, unit: Unit) -> None:
        """Take in a unit; returns at once."""
        with self._changed:
            for receipt in self.intake.offer(unit):
                # A window that is begun without a unit is decided without it.
                is_late = unit.available_ns <= self._done_ns
                if receipt.outcome is not UnitOutcome.RECEIVED or not is_late:
                    self._on_receipt(receipt)
            # Taken out at once: the queue of an encoder that works on arrival is never full.
            while (admitted := self.intake.take()) is not None:
                self._held.append(admitted)
            self._changed.notify()

    def _run(self) -> None:
        while (end_ns := self._next_window()) is not None:
            self.encode_window(end_ns)

    def _next_window(self) -> int | None:
        """Wait until a window has ended and return its end; None when stopped."""
        stride_ns = round(_WINDOWS.stride * NS_PER_S)
        look_ns = round(_WINDOWS.look_delay * NS_PER_S)
        with self._changed:
            while not self._stopping:
                now_ns = self._clock.now_ns()
                end_ns = (now_ns - look_ns) // stride_ns * stride_ns
                if self._held and end_ns > self._done_ns:
                    return end_ns
                left = (end_ns + stride_ns + look_ns - now_ns) / NS_PER_S
                self._changed.wait(max(left, _SHORTEST_WAIT) if self._held else _LONGEST_WAIT)
        return None

    def encode_window(self, end_ns: int) -> None:
        """Encode a window that has ended, and let its features leave."""
        begin_ns = end_ns - round(_WINDOWS.window * NS_PER_S)
        with self._changed:
            self._done_ns = end_ns
            gone = [held for held in self._held if held.unit.available_ns <= begin_ns]
            self._held = [held for held in self._held if held.unit.available_ns > begin_ns]
            units = [held for held in self._held if held.unit.available_ns <= end_ns]
        for held in gone:
            if held.unit.sequence not in self._published:
                # Every window that it belongs to was dropped.
                self.intake.dropped += 1
                self._on_receipt(receipt_of(held.unit, UnitOutcome.DROPPED))
        self._published -= {held.unit.sequence for held in gone}
        if not self.encodes_anew:
            units = [held for held in units if held.unit.sequence not in self._published]
        self._publish(self._encoded(units))

    def _encoded(self, units: Sequence[Admitted]) -> list[UnitFeatures]:
        """Encode units one after the other; those that cannot be are reported."""
        begin_ns, begun = self._clock.now_ns(), self._clock.monotonic_ns()
        made = []
        for unit, configuration, number in units:
            try:
                made.append(self._encoder.encode(unit, configuration, number))
                self.encoded += 1
            except (SensingError, EncodingError) as err:
                count_failure(self.failures, str(err))
                if unit.sequence not in self._published:
                    self._on_receipt(receipt_of(unit, UnitOutcome.FAILED, str(err)))
                    self._published.add(unit.sequence)
        end_ns = begin_ns + self._clock.monotonic_ns() - begun
        return [_through(features, begin_ns, end_ns) for features in made]

    def _publish(self, made: Sequence[UnitFeatures]) -> None:
        for features in reversed(made):
            if features.sequence not in self._published:
                self._published.add(features.sequence)
                self._on_features(features)


class CachedWindowEncoderWorker(WindowEncoderWorker):
    """Encodes at the end of a window the units that no window before had."""

    encodes_anew = False


def _through(features: UnitFeatures, begin_ns: int, end_ns: int) -> UnitFeatures:
    trail = extend_trail(features.trail, 'queue', begin_ns)
    return replace(features, trail=extend_trail(trail, 'encode', end_ns))
