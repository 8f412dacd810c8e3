"""Encoders that hold units until their window ends."""

from __future__ import annotations

from hand_made_units import Collected, FakeEncoder, ManualClock, at, unit

from mmedge_lab.rivals.blocking_graph.window_encoder import (
    CachedWindowEncoderWorker,
    WindowEncoderWorker,
)
from mmedge_ros.core.data_types import Unit, UnitFeatures, UnitOutcome, UnitReceipt
from mmedge_ros.encoding import EncodingError


class Rig:
    """A worker without its thread: windows end when a test says so."""

    def __init__(self, kind: type[WindowEncoderWorker], broken: int = -1) -> None:
        self.clock = ManualClock(at(0))
        self.out: list[UnitFeatures | UnitReceipt] = []
        self.encoder = FakeEncoder(work=self._work)
        self.worker = kind(self.encoder, self.clock, self.out.append, self.out.append)
        self._broken = broken

    def _work(self, of: Unit) -> None:
        self.clock.ns += at(20) - at(0)
        if of.sequence == self._broken:
            raise EncodingError('it is broken')

    def offer(self, *sequences: int) -> None:
        """Units a twentieth of a second apart, the first at 50 ms."""
        for sequence in sequences:
            self.worker.offer(unit(50.0 * (sequence + 1), sequence=sequence))

    def window(self, end_ms: float) -> tuple[list[int], list[int]]:
        """Which units are encoded when a window ends, and whose features leave."""
        self.clock.ns = max(self.clock.ns, at(end_ms))
        calls, told = len(self.encoder.calls), len(self.out)
        self.worker.encode_window(at(end_ms))
        left = [item.sequence for item in self.out[told:] if isinstance(item, UnitFeatures)]
        return [call[0].sequence for call in self.encoder.calls[calls:]], left

    def outcomes(self, outcome: UnitOutcome) -> list[int]:
        receipts = [item for item in self.out if isinstance(item, UnitReceipt)]
        return [receipt.sequence for receipt in receipts if receipt.outcome is outcome]


def test_each_window_is_encoded_anew_and_each_unit_leaves_once() -> None:
    rig = Rig(WindowEncoderWorker)
    rig.offer(0, 1, 2)
    # The third is received after the end.
    assert rig.window(100) == ([0, 1], [1, 0])
    rig.offer(3)
    assert rig.window(200) == ([0, 1, 2, 3], [3, 2])
    assert rig.worker.encoded == 6


def test_with_a_cache_only_what_is_new_is_encoded() -> None:
    rig = Rig(CachedWindowEncoderWorker)
    rig.offer(0, 1, 2, 3)
    assert rig.window(100) == ([0, 1], [1, 0])
    assert rig.window(200) == ([2, 3], [3, 2])


def test_units_whose_windows_were_all_dropped_are_said_to_be_dropped() -> None:
    rig = Rig(WindowEncoderWorker)
    rig.offer(0, 1, 10, 11)
    # Windows are half a second long.
    assert rig.window(600) == ([10, 11], [11, 10])
    assert rig.outcomes(UnitOutcome.DROPPED) == [0, 1]
    assert rig.worker.intake.dropped == 2


def test_a_unit_that_cannot_be_encoded_fails_once_and_the_others_leave() -> None:
    rig = Rig(WindowEncoderWorker, broken=1)
    rig.offer(0, 1, 2)
    assert rig.window(200) == ([0, 1, 2], [2, 0])
    assert rig.window(200)[1] == []
    assert rig.outcomes(UnitOutcome.FAILED) == [1]


def test_the_thread_encodes_the_newest_window_that_has_ended() -> None:
    clock, out = ManualClock(at(0)), Collected()
    encoder = FakeEncoder()
    worker = WindowEncoderWorker(encoder, clock, lambda _: None, out)
    worker.offer(unit(50.0, sequence=0))
    worker.offer(unit(150.0, sequence=1))
    clock.ns = at(203)
    worker.start()
    assert [features.sequence for features in out.wait_for(2)] == [1, 0]
    worker.stop(10.0)
    assert len(encoder.calls) == 2
