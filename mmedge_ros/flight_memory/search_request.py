"""What the command line and the graph ask of memories, checked before anything is rated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.example import Embed, example_picture
from mmedge_ros.flight_memory.memory_store import MemoryReader
from mmedge_ros.flight_memory.moment import Spot
from mmedge_ros.flight_memory.query import LONGEST_QUERY, Filters, MemoryQuery, read_query
from mmedge_ros.flight_memory.search import QueryScorer, SearchResult, search, taps_of
from mmedge_ros.flight_memory.store_file import StoreHeader

MOST_MOMENTS = 1000


class AskedScorer(QueryScorer, Protocol):
    """A scorer that says whether words outside the vocabulary tell it something as well."""

    knows_all_words: bool


@dataclass(frozen=True)
class SearchRequest:
    """What is asked; what is empty is not asked for.

    ``example`` is a JPEG or PNG of one object; ``like`` the number of a view of the first memory.
    ``near``: x, y, radius (m). ``between_ns``: first and last stamp; ``offsets_ns`` the same from
    the begin of each recording.
    """

    words: str = ''
    example: bytes = b''
    like: int = 0
    near: tuple[float, float, float] | None = None
    between_ns: tuple[int, int] | None = None
    offsets_ns: tuple[int, int] | None = None
    limit: int = 10


def find_moments(
    memories: Sequence[MemoryReader],
    request: SearchRequest,
    scorer_for: Callable[[StoreHeader], AskedScorer],
    embed: Embed,
) -> SearchResult:
    """Return the moments that fit a question best.

    :raises FlightMemoryError: if nothing is asked or understood, the example is no picture, or a
        memory cannot be read
    :raises EncodingError: if the example cannot be embedded
    """
    words, filters = request.words.strip(), _filters(request)
    if len(words) > LONGEST_QUERY:
        raise FlightMemoryError(f'a question has at most {LONGEST_QUERY} characters')
    if not 1 <= request.limit <= MOST_MOMENTS:
        raise FlightMemoryError(f'{request.limit} moments; ask for 1 to {MOST_MOMENTS}')
    labels = {str(label) for memory in memories for label in memory.table().texts['label']}
    parsed = read_query(words, labels)
    left = parsed.left_to_text()
    # Asked only where it matters: what made a memory need not be here for other questions.
    is_left = left != parsed and all(scorer_for(m.header).knows_all_words for m in memories)
    parsed = left if is_left else parsed
    examples = [
        *([taps_of(memories[0], request.like)] if request.like else ()),
        *([embed(example_picture(request.example))] if request.example else ()),
    ]
    if not examples and filters == Filters() and not (parsed.is_understood or is_left):
        unknown = ', '.join(parsed.unknown) or repr(words)
        raise FlightMemoryError(
            f'none of these words is known: {unknown}; ask for labels, colours, motion or light, '
            'such as "person in red"'
            if words
            else 'nothing is asked for; say words, an example, a place or a time'
        )
    bundles = {memory.header for memory in memories}
    if examples and len(bundles) > 1:
        raise FlightMemoryError(
            f'the memories were made by {len(bundles)} bundles, and examples are compared by one; '
            'search them one after another'
        )
    if words and len(bundles) > 1 and any(scorer_for(b).knows_all_words for b in bundles):
        raise FlightMemoryError(
            f'the memories were made by {len(bundles)} encoders, whose scores for words do not '
            'compare; search them one after another'
        )
    # No examples are what a query has by default.
    shown = {'examples': np.concatenate(examples)} if examples else {}
    query = MemoryQuery(parsed, filters=filters, **shown)
    return search(memories, query, scorer_for, request.limit)


def _filters(request: SearchRequest) -> Filters:
    for span in (request.between_ns, request.offsets_ns):
        if span is not None and span[0] > span[1]:
            raise FlightMemoryError('the time ends before it begins; name the earlier one first')
    place = request.near or (0.0, 0.0, 0.0)
    x, y, radius = place
    if request.near and (not all(map(math.isfinite, place)) or radius <= 0.0):
        raise FlightMemoryError(
            f'near {x:g}, {y:g} with a radius of {radius:g} m; name a place and a radius above 0'
        )
    return Filters(
        between_ns=request.between_ns,
        offsets_ns=request.offsets_ns,
        centre=Spot(x, y) if request.near else None,
        radius=radius,
    )
