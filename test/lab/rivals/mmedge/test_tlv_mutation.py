"""Damaged streams cost what was damaged and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.rivals.mmedge import tlv_mutation
from mmedge_lab.rivals.mmedge.tlv_mutation import mutated, run_mutations
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar import tlv_parser
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
            if self.damaged:
                raise IndexError('broken')
            return super().finish()

    monkeypatch.setattr(tlv_mutation, 'TlvParser', Forgetful)
    failures = run_mutations(5, 1).failures
    assert failures[0] == 'seed 1, stream 0: IndexError: broken'

    class Lossy(TlvParser):
        def feed(self, data: bytes) -> list:  # type: ignore[override]
            return super().feed(data)[1:]

    monkeypatch.setattr(tlv_mutation, 'TlvParser', Lossy)
    assert any('intact packets not found' in text for text in run_mutations(50, 1).failures)


def test_a_parser_that_takes_packets_for_whole_that_are_not_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Credulous(TlvParser):
        def _judge(self, start: int, *, silent: bool, final: bool) -> tlv_parser._Verdict:
            return tlv_parser.read_packet(self._buffer, start, tlv_parser.MAX_PACKET_BYTES)

    monkeypatch.setattr(tlv_mutation, 'TlvParser', Credulous)
    assert any('were not sent' in text for text in run_mutations(1000, 1).failures)


def test_points_beyond_the_limits_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def unlimited(packets: list, limits: object) -> DetectedPoints:
        return detected_points(packets)

    monkeypatch.setattr(tlv_mutation, 'detected_points', unlimited)
    assert any('beyond the limits' in text for text in run_mutations(300, 1).failures)


def test_recordings_survive_mutation(data_folder: Path) -> None:
    captures = sorted((data_folder / 'ti_tlv').glob('*.dat'))
    assert run_mutations(1000, 2, captures).failures == []


def test_an_empty_stream_can_be_mutated_and_no_stream_is_no_run() -> None:
    for seed in range(20):
        assert isinstance(mutated(b'', np.random.default_rng(seed)), bytes)
    with pytest.raises(SensingError, match='at least 1'):
        run_mutations(0, 1)


def test_a_file_without_packets_cannot_be_mutated(tmp_path: Path) -> None:
    (tmp_path / 'text').write_text('no packet')
    with pytest.raises(SensingError, match='9 bytes without a packet'):
        run_mutations(1, 1, [tmp_path / 'text'])
