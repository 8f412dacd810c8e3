"""Parameters of an encoder node, and the encoder they ask for."""

from __future__ import annotations

from dataclasses import dataclass

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.model_bundle import domain_warning
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.unit_encoder import CameraEncoder, RadarEncoder, UnitEncoder
from mmedge_ros.parameter import group, parameter
from mmedge_ros.ros.diagnostics import Watch
from mmedge_ros.sensing.radar.filter import RadarLimits


@dataclass(frozen=True)
class UnitEncoderParameters:
    """One encoder of the graph."""

    modality: str = parameter(CAMERA, 'what is encoded', choices=(CAMERA, RADAR))
    image_transport: str = parameter(
        'raw',
        'form of the pictures: camera/image or camera/image/compressed',
        choices=('raw', 'compressed'),
    )
    detector: str = parameter(
        '',
        'weights file (.onnx, .pt), bundle folder or name of a bundle; empty takes the one that '
        'suits the pictures',
    )
    simulated: bool = parameter(
        False,
        'the pictures come from the simulator; decides which detector an empty name takes, and '
        'whether to warn of one that was trained on simulated pictures only',
    )
    rate: float = parameter(
        0.0, 'upper bound until a Configuration says otherwise; 0 encodes every unit', 'Hz', 0.0
    )
    level: str = parameter('', 'model level until a Configuration says otherwise')
    device: str = parameter('cpu', 'where the network runs: cpu, cuda or tensorrt')
    queue: int = parameter(
        2, 'units that may wait; when full the oldest is dropped and counted', '', 1, 100
    )
    detection: DetectorParameters = group(DetectorParameters)
    limits: RadarLimits = group(RadarLimits)


def make_encoder(p: UnitEncoderParameters) -> UnitEncoder:
    """Build the encoder the parameters ask for."""
    if p.modality == RADAR:
        return _radar_encoder(p)
    return CameraEncoder.from_path(default_detector(p.detector, p.simulated), p.detection)


def _radar_encoder(p: UnitEncoderParameters) -> UnitEncoder:
    try:
        model = default_detector(p.detector, p.simulated)
    except EncodingError:
        if p.detector:
            raise
        return RadarEncoder(p.limits)  # a radar alone needs no model
    return RadarEncoder.from_path(model, p.limits, p.detection.threads)


class EncoderWatch:
    """Watches the input of an encoder, and remembers what is wrong with its model.

    ``warning`` says in words that the model is none for such pictures; '' if it is.
    """

    def __init__(self, watch: Watch, p: UnitEncoderParameters) -> None:
        self._watch = watch
        self.warning = ''
        if p.modality == CAMERA:
            model = default_detector(p.detector, p.simulated)
            self.warning = domain_warning(model, p.simulated)

    def missing(self) -> list[str]:
        """Say in words what is missing at present, and what is wrong with the model."""
        return [*self._watch.missing(), *((self.warning,) if self.warning else ())]
