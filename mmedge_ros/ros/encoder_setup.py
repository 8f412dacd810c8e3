"""Parameters of an encoder node, and the encoder they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mmedge_ros.data_types import CAMERA, MOST_REUSE
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.model_bundle import domain_warning
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.encoder_registry import EncoderSettings, encoder_kind
from mmedge_ros.encoding.opened_levels import HeldLevel
from mmedge_ros.encoding.recogniser_parameters import RecogniserParameters
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.parameter import group, parameter
from mmedge_ros.pipeline.encoder_worker import EncoderWorker
from mmedge_ros.ros.diagnostics import Watch, problem_figures
from mmedge_ros.sensing.radar.filter import RadarLimits


@dataclass(frozen=True)
class MemoryViewParameters:
    """What a flight memory gets to see."""

    rate: float = parameter(
        0.0,
        'looks at each object, and at the scene, for a flight memory; they leave as pictures of '
        'people (`perception/moments`); 0: none',
        'Hz',
        0.0,
        10.0,
    )


@dataclass(frozen=True)
class UnitEncoderParameters:
    """One encoder of the graph."""

    modality: str = parameter(
        CAMERA, 'what is encoded: camera, radar, or a modality that a package has registered'
    )
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
        0.0, 'upper bound, whatever a Configuration says; 0 encodes every unit', 'Hz', 0.0
    )
    level: str = parameter('', 'model level until a Configuration says otherwise')
    reuse: int = parameter(
        1,
        'about every n-th picture is encoded, and in the others the detected objects are followed '
        'by image motion; a Configuration may ask for fewer; 1 encodes every one',
        '',
        1,
        MOST_REUSE,
    )
    device: str = parameter('cpu', 'where the network runs: cpu, cuda or tensorrt')
    queue: int = parameter(
        2, 'units that may wait; when full all are dropped and counted, for the newest', '', 1, 100
    )
    detection: DetectorParameters = group(DetectorParameters)
    limits: RadarLimits = group(RadarLimits)
    recogniser: RecogniserParameters = group(RecogniserParameters)
    memory: MemoryViewParameters = group(MemoryViewParameters)


def make_encoder(p: UnitEncoderParameters) -> UnitEncoder:
    """Build the encoder the parameters ask for.

    :raises EncodingError: if there is none for the modality, or its model cannot be used
    """
    kind = encoder_kind(p.modality)
    model: Path | None = None
    try:
        model = default_detector(p.detector, p.simulated)
    except EncodingError:
        if p.detector or p.modality == CAMERA:
            raise  # other sensors alone need no model
    held = HeldLevel(p.level, p.device)
    remembers = p.memory.rate > 0.0
    return kind.make(EncoderSettings(model, p.detection, p.limits, p.recogniser, held, remembers))


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


def encoder_figures(worker: EncoderWorker, encoder: UnitEncoder) -> dict[str, object]:
    """Return what diagnostics show of the units of an encoder."""
    intake, recogniser, modality = worker.intake, worker.recogniser, encoder.modality
    return {
        'received': intake.received,
        'encoded': worker.encoded,
        'followed': worker.followed,
        'waiting': len(intake),
        'dropped': intake.dropped,
        'skipped': intake.skipped,
        'thinned': intake.thinned,
        'failed': worker.failures.total(),
        'implausible_stamps': intake.implausible_stamps,
        # Copies are taken because the worker goes on counting.
        **problem_figures(modality, worker.failures.copy()),
        **problem_figures(modality, encoder.problems.copy()),
        **(recogniser.figures() if recogniser is not None else {}),
    }
