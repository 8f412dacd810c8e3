"""The files of /proc and /sys of machines, as far as the monitor reads them."""

from __future__ import annotations

from pathlib import Path


def write_files(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root, as the kernel shows them: with a newline at the end."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{content}\n')
    return root


def proc_stat(cores: dict[int, tuple[int, int]]) -> str:
    """Make /proc/stat of cores with (busy, idle) ticks; a few of idle are waiting for a disk."""
    lines = ['cpu  1 2 3 4 5 6 7 8 0 0']
    for core, (busy, idle) in cores.items():
        lines.append(f'cpu{core} {busy - 3} 1 1 {idle - 2} 2 0 1 0 77 0')
    return '\n'.join([*lines, 'intr 4711 0 0', 'ctxt 1', 'btime 1'])


def _basics(cores: int, megabytes: int, available: int) -> dict[str, str]:
    return {
        'proc/stat': proc_stat(dict.fromkeys(range(cores), (1000, 5000))),
        'proc/meminfo': (
            f'MemTotal:       {megabytes * 1024} kB\nMemFree:  1024 kB\n'
            f'MemAvailable:   {available * 1024} kB\nHugePages_Total:       0\n'
            'SwapTotal:       1024 kB\nSwapFree:       512 kB'
        ),
    }


def _clocks(cores: int, kilohertz: int) -> dict[str, str]:
    folder = 'sys/devices/system/cpu'
    return {f'{folder}/cpu{n}/cpufreq/scaling_cur_freq': str(kilohertz) for n in range(cores)}


def _zones(zones: dict[str, int | str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, (kind, millidegrees) in enumerate(zones.items()):
        folder = f'sys/class/thermal/thermal_zone{number}'
        found |= {f'{folder}/type': kind, f'{folder}/temp': str(millidegrees)}
    return found


def _ina3221(hwmon: str, rails: list[tuple[str, int, int]]) -> dict[str, str]:
    folder = f'sys/class/hwmon/{hwmon}'
    found = {f'{folder}/name': 'ina3221'}
    for n, (label, millivolts, milliamperes) in enumerate(rails, start=1):
        found |= {
            f'{folder}/in{n}_label': label,
            f'{folder}/in{n}_input': str(millivolts),
            f'{folder}/curr{n}_input': str(milliamperes),
        }
    return found


def orin_nano(root: Path) -> Path:
    """Jetson Orin Nano with JetPack 6: 6 cores, VDD_IN of 5 V x 1.5 A, CV zones off."""
    alert = 'sys/class/thermal/cooling_device0'
    zones: dict[str, int | str] = {
        'cpu-thermal': 48531,
        'gpu-thermal': 47218,
        'cv0-thermal': '',  # reading it fails while the part is off
        'soc0-thermal': 46500,
        'tj-thermal': 48531,
    }
    rails = [('VDD_IN', 5000, 1500), ('VDD_CPU_GPU_CV', 5000, 400), ('VDD_SOC', 5000, 300)]
    return write_files(
        root,
        {
            **_basics(6, 7620, 5715),
            **_clocks(6, 1510400),
            **_zones(zones),
            **_ina3221('hwmon1', rails),
            'sys/class/hwmon/hwmon0/name': 'nvme',
            'sys/class/hwmon/hwmon2/name': 'soctherm_oc',
            'sys/class/hwmon/hwmon2/oc1_event_cnt': '2',
            'sys/class/hwmon/hwmon2/oc3_event_cnt': '0',
            'sys/devices/platform/bus@0/17000000.gpu/load': '437',
            'sys/class/devfreq/17000000.gpu/device/load': '437',
            'sys/class/devfreq/17000000.gpu/cur_freq': '624750000',
            f'{alert}/type': 'cpu-throttle-alert',
            f'{alert}/cur_state': '0',
            'sys/class/thermal/cooling_device1/type': 'pwm-fan',
            'sys/class/thermal/cooling_device1/cur_state': '3',
        },
    )


def xavier_nx(root: Path) -> Path:
    """Jetson Xavier NX with JetPack 4: rails by the old driver, a constant PMIC zone."""
    chip = 'sys/bus/i2c/drivers/ina3221x/7-0040/iio:device0'
    rails = {0: ('VDD_IN', 5542), 1: ('VDD_CPU_GPU_CV', 1594), 2: ('VDD_SOC', 1234)}
    return write_files(
        root,
        {
            **_basics(4, 6834, 4560),
            **_clocks(4, 1190400),
            **_zones({'CPU-therm': 40000, 'GPU-therm': 38500, 'PMIC-Die': 100000}),
            **{f'{chip}/rail_name_{n}': name for n, (name, _) in rails.items()},
            **{f'{chip}/in_power{n}_input': str(mw) for n, (_, mw) in rails.items()},
            'sys/class/devfreq/17000000.gv11b/device/load': '1000',
            'sys/class/devfreq/17000000.gv11b/cur_freq': '1109250000',
            'sys/class/thermal/cooling_device0/type': 'gpu-throttle-alert',
            'sys/class/thermal/cooling_device0/cur_state': '1',
        },
    )


def laptop(root: Path) -> Path:
    """Intel with a GPU of AMD: core temperatures by hwmon, a zone that is always 20 degrees."""
    core = 'sys/class/hwmon/hwmon3'
    folder = 'sys/devices/system/cpu'
    return write_files(
        root,
        {
            **_basics(8, 16000, 4000),
            **_clocks(8, 3400000),
            **_zones({'INT3400 Thermal': 20000, 'acpitz': 51000}),
            f'{core}/name': 'coretemp',
            f'{core}/temp1_input': '71000',
            f'{core}/temp1_label': 'Package id 0',
            f'{core}/temp2_input': '69000',
            'sys/class/drm/card1/device/gpu_busy_percent': '37',
            f'{folder}/cpu0/thermal_throttle/core_throttle_count': '12',
            f'{folder}/cpu0/thermal_throttle/package_throttle_count': '40',
            'sys/class/thermal/cooling_device0/type': 'Processor',
            'sys/class/thermal/cooling_device0/cur_state': '0',
        },
    )


def bare_machine(root: Path) -> Path:
    """A virtual machine: cores and memory, and nothing else."""
    return write_files(root, {**_basics(2, 4000, 1000), 'sys/class/thermal/.keep': ''})
