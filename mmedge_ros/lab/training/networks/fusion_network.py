"""Feature fusion as one network: two aggregators and a head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from mmedge_ros.encoding.feature_grid import CAMERA_CHANNELS
from mmedge_ros.fusion.radar_grid import RADAR_INPUT
from mmedge_ros.lab.training.networks.aggregator import WIDTH, Aggregator
from mmedge_ros.lab.training.networks.fusion_head import FusionHead
from mmedge_ros.lab.training.networks.whole_window_encoder import WINDOW, WholeWindowEncoder

RADAR_CHANNELS = RADAR_INPUT[0]


class FusionBatch(NamedTuple):
    """Windows to be fused: B of them, with room for N camera and M radar units each.

    ``camera`` (B, N, 64, 30, 40) and ``radar`` (B, M, 20, 30, 40) are grids in any order, float
    of any size; ``*_seconds`` (B, N) and (B, M) from a unit's stamp to the window's end in s;
    ``*_valid`` 0 where there is no unit (missing, late or skipped). N and M may be 0.
    """

    camera: Tensor
    camera_seconds: Tensor
    camera_valid: Tensor
    radar: Tensor
    radar_seconds: Tensor
    radar_valid: Tensor


@dataclass(frozen=True)
class FusionNetworkSettings:
    """What the network is made of; see `Aggregator` for the first three switches.

    ``whole_window`` puts `WholeWindowEncoder` in the place of both aggregators: that network
    can be trained and judged, but not be exported, and is for windows of one length (s) only.
    """

    shift: bool = True
    differences: bool = True
    aggregation: bool = True
    whole_window: bool = False
    width: int = WIDTH
    window: float = WINDOW


class FusionNetwork(nn.Module):  # type: ignore[misc]
    """Grids of a window's units to maps (B, 54, 30, 40); see `FusionHead` for their channels."""

    def __init__(self, settings: FusionNetworkSettings | None = None) -> None:
        super().__init__()
        self.settings = s = settings or FusionNetworkSettings()
        self.camera = _temporal_encoder(CAMERA_CHANNELS, s)
        self.radar = _temporal_encoder(RADAR_CHANNELS, s)
        self.head = FusionHead(CAMERA_CHANNELS, RADAR_CHANNELS, s.width)

    def set_statistics(self, camera: tuple[Tensor, Tensor], radar: tuple[Tensor, Tensor]) -> None:
        """Enter mean and standard deviation per channel, (64,) and (20,), before training."""
        for mean_and_deviation, encoder, standardise in (
            (camera, self.camera, self.head.camera),
            (radar, self.radar, self.head.radar),
        ):
            encoder.standardise.set_statistics(*mean_and_deviation)
            standardise.set_statistics(*mean_and_deviation)

    def forward(self, batch: FusionBatch) -> Tensor:
        camera = self.camera(batch.camera, batch.camera_seconds, batch.camera_valid)
        radar = self.radar(batch.radar, batch.radar_seconds, batch.radar_valid)
        maps: Tensor = self.head(camera, radar)
        return maps


def _temporal_encoder(channels: int, settings: FusionNetworkSettings) -> nn.Module:
    if settings.whole_window:
        return WholeWindowEncoder(channels, settings.width, settings.window)
    return Aggregator(
        channels,
        settings.width,
        shift=settings.shift,
        differences=settings.differences,
        aggregation=settings.aggregation,
    )
