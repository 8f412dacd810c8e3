"""Damaged streams cost what was damaged and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmedge_ros.lab.bench import tlv_mutation
from mmedge_ros.lab.bench.tlv_mutation import mutated, run_mutations
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.tlv_parser import TlvParser
from mmedge_ros.sensing.radar.tlv_points import DetectedPoints, detected_points


def test_two_thousand_mutated_streams_lose_no_intact_packet() -> None:
    outcome = run_mutations(2000, 1)
    assert outcome.failures == []
    assert outcome.streams == 2000
    assert outcome.intact > 2000
    assert outcome.points_rejected > 0
    assert outcome.bytes_thrown_away > 0


def test_the_same_seed_gives_the_same_streams() -> None:
    assert run_mutations(50, 3) == run_mutations(50, 3)
    assert run_mutations(50, 3) != run_mutations(50, 4)


def test_a_parser_that_raises_or_loses_packets_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Forgetful(TlvParser):
        def finish(self) -> list:
            super().finish()
            raise IndexError('broken')

    monkeypatch.setattr(tlv_mutation, 'TlvParser', Forgetful)
    failures = run_mutations(5, 1).failures
    assert failures[0] == 'seed 1, stream 0: IndexError: broken'

    class Lossy(TlvParser):
        def feed(self, data: bytes) -> list:  # type: ignore[override]
            return super().feed(data)[1:]

    monkeypatch.setattr(tlv_mutation, 'TlvParser', Lossy)
    assert any('intact packets not found' in text for text in run_mutations(50, 1).failures)


def test_points_beyond_the_limits_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def unlimited(packets: list, limits: object) -> DetectedPoints:
        return detected_points(packets)

    monkeypatch.setattr(tlv_mutation, 'detected_points', unlimited)
    assert any('beyond the limits' in text for text in run_mutations(300, 1).failures)


def test_recordings_survive_mutation(data_folder: Path) -> None:
    for path in sorted((data_folder / 'ti_tlv').glob('*.dat')):
        stream = path.read_bytes()
        parser = TlvParser()
        frames = [packet.data for packet in parser.feed(stream)][:8]
        for seed in range(60):
            damaged = mutated(b''.join(frames), np.random.default_rng(seed))
            parser = TlvParser()
            parsed = {packet.data for packet in parser.feed(damaged) + parser.finish()}
            assert parsed.issuperset(frame for frame in frames if frame in damaged)


def test_an_empty_stream_can_be_mutated_and_no_stream_is_no_run() -> None:
    for seed in range(20):
        assert isinstance(mutated(b'', np.random.default_rng(seed)), bytes)
    with pytest.raises(SensingError, match='at least 1'):
        run_mutations(0, 1)
