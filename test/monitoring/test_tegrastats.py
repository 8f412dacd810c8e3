"""Text of tegrastats, of several versions and damaged."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_state import UNKNOWN
from mmedge_ros.monitoring.tegrastats import read_tegrastats, state_from_line
from mmedge_ros.replay.recorded_trace import read_trace_file

approx = pytest.approx

ORIN = (
    '11-20-2026 10:00:00 RAM 1905/7620MB (lfb 2x4MB) SWAP 0/3810MB (cached 0MB) '
    'CPU [12%@1510,0%@1510,off,100%@729] GR3D_FREQ 43%@[624] cv0@-256C cpu@48.5C tj@49.25C '
    'VDD_IN 7500mW/7400mW VDD_CPU_GPU_CV 2000mW/2000mW VDD_SOC 1500mW/1500mW'
)
NANO = (
    'RAM 1000/4000MB (lfb 2x4MB) IRAM 0/252kB(lfb 252kB) CPU [50%,25%,off,0%]@1428 '
    'EMC_FREQ 4%@1600 GR3D_FREQ 99%@921 PLL@38C CPU@40.5C PMIC@100C POM_5V_IN 5000/4900 '
    'POM_5V_GPU 600/600'
)


def test_a_line_of_orin_is_read_in_full() -> None:
    state = state_from_line(ORIN)
    assert state is not None
    assert state.memory == approx(25.0)
    assert state.cpu == approx((12.0, 0.0, math.nan, 100.0), nan_ok=True)
    assert state.cpu_clock == approx((1.51e9, 1.51e9, math.nan, 7.29e8), nan_ok=True)
    assert (state.gpu, state.gpu_clock) == (43.0, 6.24e8)
    assert state.temperature == 49.25
    assert state.module_power == approx(7.5)
    assert math.isnan(state.voltage)
    assert state.throttled is None


def test_a_line_of_an_older_version_is_read_too() -> None:
    state = state_from_line(NANO)
    assert state is not None
    assert state.cpu == approx((50.0, 25.0, math.nan, 0.0), nan_ok=True)
    assert state.cpu_clock[0] == 1.428e9
    assert state.gpu_clock == 9.21e8
    assert state.temperature == 40.5  # the power management chip always says 100
    assert state.module_power == approx(5.0)


def test_times_of_day_make_the_course_even_past_midnight(tmp_path: Path) -> None:
    rows = ['23:59:58', '23:59:59', '00:00:00', '00:00:02', '00:00:01']
    log = tmp_path / 'log'
    log.write_text('\n'.join(f'11-20-2026 {row} {NANO}' for row in rows))
    assert read_tegrastats(log).times == (0.0, 1.0, 2.0, 4.0, 4.0)


def test_lines_without_a_time_are_a_second_apart(tmp_path: Path) -> None:
    log = tmp_path / 'log'
    log.write_text(f'{NANO}\nsome other program spoke\n\n{NANO}\n{NANO}')
    trace = read_tegrastats(log)
    assert trace.times == (0.0, 1.0, 2.0)
    assert trace.problems == (f'{log}: 1 lines are not of tegrastats',)


def test_a_file_of_something_else_is_told_with_the_remedy(tmp_path: Path) -> None:
    log = tmp_path / 'notes.txt'
    log.write_bytes(b'\xff\xfe hello\n')
    with pytest.raises(MonitoringError, match='tegrastats --logfile'):
        read_trace_file(log)
    with pytest.raises(MonitoringError, match='missing: No such file'):
        read_trace_file(tmp_path / 'missing')
    with pytest.raises(MonitoringError, match='null'):
        read_trace_file('a\0b')


@given(st.text(max_size=300))
def test_no_line_breaks_the_reader(text: str) -> None:
    for line in (text, f'{ORIN} {text}', f'RAM {text}', f'CPU [{text}]', ORIN[: len(text)]):
        state = state_from_line(line) or UNKNOWN
        figures = (state.memory, state.gpu, *state.cpu)
        assert all(math.isnan(value) or 0.0 <= value <= 100.0 for value in figures)


def test_a_burn_test_of_a_xavier_nx_heats_up_and_draws_more(data_folder: Path) -> None:
    trace = read_trace_file(data_folder / 'tegrastats/jetson_xavier_nx_2025.log')
    assert len(trace.states) == 103
    assert trace.problems == ()
    assert trace.times[-1] == 105.0
    first, last = trace.at(0.0), trace.at(105.0)
    assert (first.module_power, last.module_power) == approx((5.542, 13.751))
    assert (first.temperature, last.temperature) == (40.0, 53.0)
    assert (first.gpu, last.gpu) == (22.0, 99.0)
    assert last.memory == approx(100.0 * 5489 / 6834)
    assert [math.isnan(load) for load in last.cpu] == [False] * 4 + [True] * 2
    assert last.mean_cpu == approx(99.75)
