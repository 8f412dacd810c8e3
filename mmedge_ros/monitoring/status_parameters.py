"""From which values on the parts of the machine are in a bad state."""

from __future__ import annotations

from dataclasses import dataclass

from mmedge_ros.parameter import parameter


@dataclass(frozen=True)
class StatusParameters:
    """Limits for /diagnostics; what the pipeline does about them has limits of its own."""

    voltage_warning: float = parameter(
        0.0, 'battery voltage to warn below; 0 as it depends on the cells', 'V', 0.0, 1000.0
    )
    voltage_error: float = parameter(
        0.0, 'battery voltage that is an error below; 0 for none', 'V', 0.0, 1000.0
    )
    charge_warning: float = parameter(0.25, 'charge of the battery to warn below', '', 0.0, 1.0)
    charge_error: float = parameter(0.12, 'charge that is an error below', '', 0.0, 1.0)
    cpu_warning: float = parameter(
        95.0, 'mean load of the cores to warn above, once it lasts', '%', 0.0, 100.0
    )
    gpu_warning: float = parameter(
        98.0, 'load of the GPU to warn above, once it lasts', '%', 0.0, 100.0
    )
    memory_warning: float = parameter(85.0, 'memory in use to warn above', '%', 0.0, 100.0)
    memory_error: float = parameter(95.0, 'memory in use that is an error above', '%', 0.0, 100.0)
    temperature_warning: float = parameter(
        80.0, 'hottest zone to warn above; Jetsons throttle at 95 to 99', 'C', 0.0, 150.0
    )
    temperature_error: float = parameter(
        92.0, 'hottest zone that is an error above', 'C', 0.0, 150.0
    )
    lasting: float = parameter(
        5.0, 'how long a load must last to be worth a warning', 's', 0.0, 600.0
    )
    margin: float = parameter(
        0.03,
        'how far a value must come back behind its limit, as a share of the limit, so that one '
        'at the limit does not flicker',
        '',
        0.0,
        0.5,
    )
    release: float = parameter(
        2.0, 'how long it must be back before the state is better', 's', 0.0, 600.0
    )
