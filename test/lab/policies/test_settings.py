"""Service times are those of offline replay, longer where there is less of the processor."""

from __future__ import annotations

import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.policies.settings import ServiceTimes, slowed
from mmedge_ros.core.device_profile import DeviceProfile

SPREAD = (0.01, 0.012, 0.015, 0.02, 0.03, 0.04)
PROFILE = DeviceProfile(
    'by hand', {'camera.encode': SPREAD, 'fusion': SPREAD, 'features.transport': SPREAD}
)


def test_a_share_of_the_processor_stretches_every_time() -> None:
    share = 0.64
    whole, less = ServiceTimes(PROFILE), ServiceTimes(slowed(PROFILE, share))
    for sequence in range(20):
        stretched = less.encode_ns('camera', '', sequence) * share
        assert stretched == pytest.approx(whole.encode_ns('camera', '', sequence), abs=2)


@pytest.mark.parametrize('share', [0.0, -1.0, 1.5, float('nan')])
def test_a_share_that_cannot_be_is_refused(share: float) -> None:
    with pytest.raises(EvaluationError, match='above 0 and at most 1'):
        slowed(PROFILE, share)
