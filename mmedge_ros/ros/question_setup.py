"""Parameters of the node that answers questions, and what it asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.parameter import ParameterError, group, parameter
from mmedge_ros.questions.describing import DescribeParameters
from mmedge_ros.questions.language_model import LanguageModel, language_model
from mmedge_ros.questions.live_flight import LiveFlight
from mmedge_ros.ros.nodes.memory import memory_place
from mmedge_ros.ros.rig_setup import frame_prefix


@dataclass(frozen=True)
class DetectedLabels:
    """What the camera encoder detects."""

    labels: tuple[str, ...] = parameter(
        ('person',), 'labels that the camera encoder keeps: of others nothing can be said'
    )


@dataclass(frozen=True)
class QuestionParameters:
    """The node that answers questions."""

    folder: str = parameter('', 'flight memory of this flight, as the memory node has it, if any')
    detector: str = parameter(
        '', 'model of the camera encoder, see there: its bundle may have made the memory'
    )
    simulated: bool = parameter(
        False, 'the pictures come from the simulator; decides which bundle an empty name takes'
    )
    model: str = parameter(
        '',
        'language model that says more: a server on this machine such as http://127.0.0.1:8080, '
        'or a GGUF file, loaded for each question; empty: none',
    )
    projector: str = parameter('', 'projector (mmproj) that lets a GGUF see pictures')
    frame_prefix: str = frame_prefix()
    detection: DetectedLabels = group(DetectedLabels)
    describe: DescribeParameters = group(DescribeParameters)


def live_flight(
    parameters: QuestionParameters, now_ns: Callable[[], int], wake: Callable[[], None]
) -> LiveFlight:
    """Return what questions are asked of."""
    p = parameters
    memory = memory_place(p.folder) if p.folder else None
    detector = str(default_detector(p.detector, p.simulated)) if p.folder else ''
    return LiveFlight(now_ns, wake, p.detection.labels, memory, detector)


def model_of(parameters: QuestionParameters) -> LanguageModel | None:
    """Return the user's model; None where none is named.

    :raises ParameterError: for a projector without a GGUF
    :raises ModelError: for an address that is none of this machine
    """
    p = parameters
    if p.projector and (not p.model or '://' in p.model or p.model.startswith('unix:')):
        raise ParameterError('projector: goes with a GGUF file as model')
    if not p.model:
        return None
    projector = Path(p.projector) if p.projector else None
    return language_model(p.model, projector, stays=bool(p.describe.kinds))
