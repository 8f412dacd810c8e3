"""Rows are timed block by block, each in its turn."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hand_made_units import FakeEncoder, unit

from mmedge_lab.rivals.smtm.reuse_rivals import EVERY, ROWS
from mmedge_lab.rivals.smtm.reuse_times import TimedRow, take_in_turns
from mmedge_ros.core.data_types import NS_PER_S, ModalityConfiguration, Unit, UnitFeatures
from mmedge_ros.sensing.rate_control import RateControl

PERIOD = 1000.0 / 30.0


class SlowEncoder(FakeEncoder):
    """Needs 10 ms of a processor for each unit."""

    def __init__(self, spend: Callable[[float], None]) -> None:
        super().__init__()
        self._spend = spend

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        self._spend(0.01)
        return super().encode(unit, configuration, configuration_id)


class Rows:
    """Rows with a processor that only their encoders use."""

    def __init__(self, *names: str) -> None:
        self.now = 0.0
        self.timed = [
            TimedRow(
                ROWS[name],
                SlowEncoder(self._spend),
                RateControl(round(NS_PER_S / 30)),
                clock=lambda: self.now,
            )
            for name in names
        ]

    def _spend(self, seconds: float) -> None:
        self.now += seconds


def blocks(count: int, pictures: int = 30) -> list[list[Unit]]:
    numbers = range(count * pictures)
    units = [unit(PERIOD * n, sequence=n) for n in numbers]
    return [units[n : n + pictures] for n in numbers[::pictures]]


def test_the_first_block_is_not_counted() -> None:
    rows = Rows(EVERY)
    assert take_in_turns(rows.timed, blocks(3)) == 60
    (of,) = rows.timed
    assert of.encoded == 60
    assert of.processor == pytest.approx(0.6)


def test_pictures_that_the_rate_leaves_out_take_no_time() -> None:
    rows = Rows(EVERY, '15 Hz', '10 Hz')
    take_in_turns(rows.timed, blocks(4))
    assert [of.processor for of in rows.timed] == pytest.approx([0.9, 0.45, 0.3], abs=0.021)


def test_each_block_begins_with_another_row() -> None:
    rows, began = Rows(EVERY, '15 Hz', '10 Hz'), []
    for of in rows.timed:

        def take(block, *, counted, name=of.row.name):  # type: ignore[no-untyped-def]
            began.append(name)

        of.take = take  # type: ignore[method-assign]
    take_in_turns(rows.timed, blocks(3))
    assert began[::3] == [EVERY, '15 Hz', '10 Hz']
    assert sorted(began) == sorted([EVERY, '15 Hz', '10 Hz'] * 3)
