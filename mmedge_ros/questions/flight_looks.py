"""How tracks look, and pictures of them, from the flight memory of the same flight."""

from __future__ import annotations

from pathlib import Path

from mmedge_ros.encoding.bundle.default_model import bundle_folders, default_detector
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.spaces import PairSpace, scorer_for
from mmedge_ros.memory.store import MemoryReader
from mmedge_ros.questions.answer import Answer
from mmedge_ros.questions.model_prompt import MOST_PICTURES, Picture
from mmedge_ros.questions.observations import Observations
from mmedge_ros.questions.remembered_looks import remembered_looks
from mmedge_ros.questions.selection import LooksLike


def with_looks(
    memory: Path, observations: Observations, detector: str = ''
) -> tuple[Observations, LooksLike]:
    """Add what a memory knows of the looks of tracks.

    :param memory: its folder
    :param detector: bundle that it may have been made with, besides those that are installed
    :raises FlightMemoryError: if it cannot be read, or was made by another bundle or a pair
    """
    with MemoryReader(memory) as reader:
        table, header = reader.table(), reader.header
    bundles = [*bundle_folders(), *([default_detector(detector)] if detector else [])]
    space = scorer_for(bundles)(header)
    if isinstance(space, PairSpace):
        raise FlightMemoryError(
            f'{memory} was made with a pair; looks are asked of one that a bundle made'
        )
    return remembered_looks(observations, table, space)


def pictures_of_views(memory: Path, answer: Answer) -> list[Picture]:
    """Return thumbnails of what an answer is about; none where there is no memory."""
    numbers = [number for row in answer.evidence for number in row.views[:1]]
    if not numbers or not memory.exists():
        return []
    try:
        with MemoryReader(memory) as reader:
            found = [(number, reader.thumbnail(number)) for number in numbers[:MOST_PICTURES]]
    except FlightMemoryError:
        return []  # it was said when looks were asked for
    return [Picture(f'view {number}', jpeg) for number, jpeg in found if jpeg]
