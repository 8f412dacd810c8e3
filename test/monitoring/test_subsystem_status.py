"""What /diagnostics says about each part of the machine."""

from __future__ import annotations

from dataclasses import replace

from mmedge_ros.monitoring.hysteresis import Level
from mmedge_ros.monitoring.subsystem_status import Status, StatusParameters, SubsystemStatuses
from mmedge_ros.monitoring.system_monitor import Sample, Source
from mmedge_ros.monitoring.system_state import UNKNOWN, Reading, Subsystem, SystemState

WELL = SystemState(
    voltage=15.2,
    current=20.0,
    power=304.0,
    charge=0.8,
    cpu=(30.0, 50.0),
    gpu=40.0,
    memory=50.0,
    temperature=55.0,
    cpu_clock=(1.5e9, 1.2e9),
    gpu_clock=6e8,
    throttled=False,
    module_power=7.5,
)


class Judged:
    """Statuses by part, a second after each other."""

    def __init__(self, parameters: StatusParameters | None = None) -> None:
        self.statuses = SubsystemStatuses(parameters or StatusParameters())
        self.now = 0.0

    def __call__(
        self, state: SystemState, sources: tuple[Source, ...] = ()
    ) -> dict[Subsystem, Status]:
        self.now += 1.0
        found = self.statuses.update(Sample(state, sources), self.now)
        return {status.subsystem: status for status in found}


def test_every_part_has_a_status_with_its_figures() -> None:
    found = Judged()(WELL)
    assert set(found) == set(Subsystem)
    assert {status.level for status in found.values()} == {Level.OK}
    assert {status.message for status in found.values()} == {'good'}
    assert found[Subsystem.CPU].values == {'cpu': '40 %'}
    assert found[Subsystem.CLOCKS].values == {'throttled': '0', 'slowest core': '1200 MHz'}
    assert found[Subsystem.BATTERY].values['voltage'] == '15.2 V'


def test_each_part_is_bad_for_its_own_reason_only() -> None:
    for change, part, words in (
        ({'charge': 0.1}, Subsystem.BATTERY, 'charge 0.1'),
        ({'memory': 96.0}, Subsystem.MEMORY, 'memory 96 %'),
        ({'temperature': 93.0}, Subsystem.TEMPERATURE, 'temperature 93 C'),
    ):
        found = Judged()(replace(WELL, **change))
        assert found[part].level == Level.ERROR
        assert found[part].message == words
        assert [s.level for s in found.values()].count(Level.OK) == len(Subsystem) - 1
    throttled = Judged()(replace(WELL, throttled=True))
    assert throttled[Subsystem.CLOCKS].level == Level.WARN


def test_a_load_is_worth_a_word_when_it_lasts() -> None:
    judged = Judged()
    busy = replace(WELL, cpu=(100.0, 98.0), gpu=100.0)
    levels = [judged(busy)[Subsystem.CPU].level for _ in range(6)]
    assert levels == [0, 0, 0, 0, 0, 1]
    assert judged(busy)[Subsystem.GPU].level == Level.WARN


def test_the_voltage_is_judged_where_a_limit_is_given() -> None:
    sagged = replace(WELL, voltage=13.0)
    assert Judged()(sagged)[Subsystem.BATTERY].level == Level.OK
    limits = StatusParameters(voltage_warning=14.0, voltage_error=13.2)
    assert Judged(limits)(sagged)[Subsystem.BATTERY].level == Level.ERROR


def test_what_a_machine_never_had_is_no_fault_but_what_it_lost_is() -> None:
    silent = Source('thermal', Subsystem.TEMPERATURE, Reading(problem='no temperature here'))
    judged = Judged()
    before = judged(replace(WELL, temperature=UNKNOWN.temperature), (silent,))
    assert before[Subsystem.TEMPERATURE].level == Level.OK
    assert before[Subsystem.TEMPERATURE].message == (
        'unknown on this machine: no temperature here'
    )
    judged(WELL)
    after = judged(replace(WELL, temperature=UNKNOWN.temperature), (silent,))
    assert after[Subsystem.TEMPERATURE].level == Level.WARN
    assert after[Subsystem.TEMPERATURE].message == 'temperature lost: no temperature here'
    assert after[Subsystem.TEMPERATURE].values == {'temperature': 'unknown'}
    assert judged(WELL)[Subsystem.TEMPERATURE].message == 'good'


def test_details_are_shown_but_not_without_end() -> None:
    details = {f'zone {n}': float(n) for n in range(1000)}
    source = Source('thermal', Subsystem.TEMPERATURE, Reading(details=details))
    values = Judged()(WELL, (source,))[Subsystem.TEMPERATURE].values
    assert values['zone 7'] == '7'
    assert len(values) == 101
