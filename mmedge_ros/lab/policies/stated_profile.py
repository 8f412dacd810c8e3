"""Service times for comparisons: a board on which the highest level only just keeps up."""

from __future__ import annotations

from mmedge_ros.records.device_profile import DeviceProfile

# How encode times of `config/profiles/default.yaml` scatter about their median.
_SPREAD = (0.96, 0.98, 1.0, 1.09, 1.26, 1.46)


def _scattered(median: float) -> tuple[float, ...]:
    return tuple(round(median * share, 6) for share in _SPREAD)


# Small, medium and large of the shipped bundle take about 4, 9 and 16 ms on two x86-64 cores;
# twice as long, the highest level keeps up with 30 pictures a second, and any load tells.
STATED = DeviceProfile(
    'stated, not measured: a board with 8, 17 and 30 ms per picture (small, medium, large), '
    '0.5 ms per scan, 1.4 ms transport, 3 ms per decision',
    {
        'camera.small.encode': _scattered(0.008),
        'camera.medium.encode': _scattered(0.017),
        'camera.large.encode': _scattered(0.030),
        'camera.encode': _scattered(0.030),
        'radar.encode': _scattered(0.0005),
        'features.transport': _scattered(0.0014),
        'receipt.transport': _scattered(0.0002),
        'fusion': _scattered(0.003),
    },
)
