"""NVIDIA cards by their library, with the library in our hands."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.graphics import NvmlGpu


class RefusedError(Exception):
    """Stands for pynvml.NVMLError."""


class Card:
    """Stands for the module pynvml; figures that are None are refused."""

    NVMLError = RefusedError
    NVML_CLOCK_GRAPHICS = 0
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, load: int | None, celsius: int | None, reasons: int | None) -> None:
        self.load, self.celsius, self.reasons = load, celsius, reasons
        self.begun = False

    def nvmlInit(self) -> None:  # noqa: N802  # names of the library
        self.begun = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.begun = False

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return f'card {index}'

    def nvmlDeviceGetUtilizationRates(self, card: str) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(gpu=told(self.load))

    def nvmlDeviceGetClockInfo(self, card: str, kind: int) -> int:  # noqa: N802
        return int(told(1980 if self.load is not None else None))

    def nvmlDeviceGetTemperature(self, card: str, kind: int) -> int:  # noqa: N802
        return int(told(self.celsius))

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, card: str) -> int:  # noqa: N802
        return int(told(self.reasons))

    def nvmlDeviceGetPowerUsage(self, card: str) -> int:  # noqa: N802
        raise RefusedError('not supported')


def told(figure: int | None) -> int:
    if figure is None:
        raise RefusedError('not supported')
    return figure


def test_a_card_tells_load_clock_and_heat_in_our_units() -> None:
    card = Card(load=42, celsius=63, reasons=0x1)
    probe = NvmlGpu(card)
    state = probe.read().state
    assert (state.gpu, state.gpu_clock, state.temperature) == (42.0, 1.98e9, 63.0)
    assert state.throttled is False  # idling is no limit of the firmware
    probe.close()
    assert not card.begun


@pytest.mark.parametrize(('reasons', 'limited'), [(0x20, True), (0x02, False), (0x89, True)])
def test_heat_and_supply_throttle_but_a_users_wish_does_not(reasons: int, limited: bool) -> None:
    assert NvmlGpu(Card(1, 60, reasons)).read().state.throttled is limited


def test_a_figure_that_is_refused_is_unknown_and_the_others_stay() -> None:
    state = NvmlGpu(Card(None, 60, None)).read().state
    assert math.isnan(state.gpu)
    assert state.temperature == 60.0
    assert state.throttled is None


def test_a_card_that_was_lost_tells_nothing() -> None:
    probe = NvmlGpu(Card(None, None, None))
    with pytest.raises(MonitoringError, match='reports nothing'):
        probe.read()


def test_without_a_card_there_is_no_probe() -> None:
    class Empty(Card):
        def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
            raise RefusedError('not found')

    with pytest.raises(MonitoringError, match='NVML: no card: not found'):
        NvmlGpu(Empty(1, 1, 1))
