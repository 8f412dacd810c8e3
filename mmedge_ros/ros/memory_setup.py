"""Parameters of the memory node, and how questions reach the memory and come back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.memory.encoders import MemoryEncoder, bundle_that_embeds
from mmedge_ros.memory.search import SearchRequest, SearchResult, find_moments
from mmedge_ros.memory.store import SUFFIX, MemoryReader
from mmedge_ros.parameter import ParameterError, parameter
from mmedge_ros.ros.rig_setup import frame_prefix


@dataclass(frozen=True)
class MemoryParameters:
    """The memory of this flight."""

    folder: str = parameter(
        '', 'where views are kept, best FLIGHT.memory beside the recording FLIGHT'
    )
    detector: str = parameter(
        '',
        'model of the camera encoder, see there: the recogniser of its bundle embeds, or that of '
        'the first bundle with one',
    )
    simulated: bool = parameter(
        False, 'the pictures come from the simulator; decides which bundle an empty name takes'
    )
    calibration_file: str = parameter(
        '', 'camera_info YAML (and transforms) that takes the place of what is published'
    )
    transforms: tuple[str, ...] = parameter(
        (), 'static transforms, each "parent child x y z qx qy qz qw" in m'
    )
    frame_prefix: str = frame_prefix()
    keep: float = parameter(
        0.0, 'views are forgotten after this long; 0 keeps them until somebody forgets', 'h', 0.0
    )
    pictures: bool = parameter(
        True, 'keep thumbnails; without them what was seen is found, but not shown'
    )


def memory_place(named: str) -> Path:
    """Return the folder of a memory, ending in ``.memory``.

    :raises ParameterError: if none is named
    """
    if not named:
        raise ParameterError(
            'memory: name a folder for what is remembered, such as folder:=flight.memory'
        )
    folder = Path(named).expanduser().absolute()
    return folder if folder.suffix == SUFFIX else folder.with_name(folder.name + SUFFIX)


class MemoryAnswers:
    """Answers questions about a memory that another thread writes; belongs to one thread.

    :raises FlightMemoryError: if it cannot be read
    """

    def __init__(self, folder: Path, encoder: MemoryEncoder) -> None:
        self._reader = MemoryReader(folder)
        self._encoder = encoder

    def of(self, request: SearchRequest) -> SearchResult:
        """Return what `find_moments` does."""
        space = self._encoder.space
        return find_moments([self._reader], request, lambda _: space, self._encoder.example)

    def thumbnail(self, number: int) -> bytes:
        """Return the JPEG of a view; b'' where none is kept."""
        return self._reader.thumbnail(number)

    def close(self) -> None:
        """Let go of the file."""
        self._reader.close()


def memory_encoder(parameters: MemoryParameters) -> MemoryEncoder:
    """Open the bundle that embeds.

    :raises EncodingError: if it has no recogniser
    """
    detector = default_detector(parameters.detector, parameters.simulated)
    return MemoryEncoder(bundle_that_embeds(detector))
