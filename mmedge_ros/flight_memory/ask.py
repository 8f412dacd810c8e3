"""A question as people and programs ask it, and its answer from one or more memories."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from mmedge_ros.encoding.detector import Image
from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.memory_store import MemoryReader
from mmedge_ros.flight_memory.moment import Spot, Vectors
from mmedge_ros.flight_memory.query import LONGEST_QUERY, Filters, MemoryQuery, read_query
from mmedge_ros.flight_memory.search import ScorerFor, SearchResult, search, vectors_of

# An example shows one object, and is shrunk anyhow.
_MOST_BYTES, _MOST_PIXELS = 20_000_000, 40_000_000
MOST_MOMENTS = 1000
# Embeds a picture of one object: (1, D).
Embed = Callable[[Image], Vectors]


@dataclass(frozen=True)
class Question:
    """What is asked; what is empty is not asked for.

    ``example`` is a JPEG or PNG of one object; ``like`` the number of a view of the first memory.
    ``near``: x, y, radius (m). ``between_ns``: first and last stamp.
    """

    words: str = ''
    example: bytes = b''
    like: int = 0
    near: tuple[float, float, float] | None = None
    between_ns: tuple[int, int] | None = None
    limit: int = 10


def ask(
    memories: Sequence[MemoryReader], question: Question, scorer_for: ScorerFor, embed: Embed
) -> SearchResult:
    """Return the moments that fit a question best.

    :raises FlightMemoryError: if nothing is asked or understood, the example is no picture, or a
        memory cannot be read
    :raises EncodingError: if the example cannot be embedded
    """
    words, filters = question.words.strip(), _filters(question)
    if len(words) > LONGEST_QUERY:
        raise FlightMemoryError(f'a question has at most {LONGEST_QUERY} characters')
    if not 1 <= question.limit <= MOST_MOMENTS:
        raise FlightMemoryError(f'{question.limit} moments; ask for 1 to {MOST_MOMENTS}')
    labels = {str(label) for memory in memories for label in memory.table().texts['label']}
    parsed = read_query(words, labels)
    examples = [
        *([vectors_of(memories[0], question.like)] if question.like else ()),
        *([embed(example_picture(question.example))] if question.example else ()),
    ]
    if not examples and filters == Filters() and not parsed.is_understood:
        unknown = ', '.join(parsed.unknown) or repr(words)
        raise FlightMemoryError(
            f'none of these words is known: {unknown}; ask for labels, colours, motion or light, '
            'such as "person in red"'
            if words
            else 'nothing is asked for; say words, an example, a place or a time'
        )
    query = MemoryQuery(parsed, filters=filters)
    if examples:
        query = MemoryQuery(parsed, np.concatenate(examples), filters)
    return search(memories, query, scorer_for, question.limit)


def example_picture(content: bytes) -> Image:
    """Return a JPEG or PNG as a picture (H, W, 3) BGR.

    :raises FlightMemoryError: if it is none, or too large
    """
    from PIL import Image as Pillow

    wrong = 'the example is no JPEG or PNG that can be read; name a picture of one object'
    if len(content) > _MOST_BYTES:
        raise FlightMemoryError(f'the example has {len(content)} bytes; at most {_MOST_BYTES}')
    try:
        # The size is known before anything is decoded.
        with Pillow.open(io.BytesIO(content), formats=['JPEG', 'PNG']) as opened:
            width, height = opened.size
    except Pillow.DecompressionBombError:
        width = height = _MOST_PIXELS
    except (OSError, ValueError, SyntaxError) as err:
        raise FlightMemoryError(wrong) from err
    if width * height > _MOST_PIXELS:
        raise FlightMemoryError(
            f'the example has more than {_MOST_PIXELS} px; cut out the object that is meant'
        )
    try:
        decoded = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as err:
        raise FlightMemoryError(wrong) from err
    if decoded is None:
        raise FlightMemoryError(wrong)
    return np.asarray(decoded, np.uint8)


def _filters(question: Question) -> Filters:
    filters = Filters(between_ns=question.between_ns)
    if question.between_ns is not None and question.between_ns[0] > question.between_ns[1]:
        raise FlightMemoryError('the time ends before it begins; name the earlier one first')
    if question.near is None:
        return filters
    x, y, radius = question.near
    if not all(map(math.isfinite, question.near)) or radius <= 0.0:
        raise FlightMemoryError(
            f'near {x:g}, {y:g} with a radius of {radius:g} m; name a place and a radius above 0'
        )
    return Filters(between_ns=question.between_ns, centre=Spot(x, y), radius=radius)
