"""`mmedge memory`: what a flight saw, kept small, and found again by words."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, existing_file, flag, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from mmedge_ros.memory.moment import Moment
    from mmedge_ros.memory.search import SearchResult

memory_app = CommandGroup(
    name='memory', no_args_is_help=True, help='Keep what a flight saw, and find it by words.'
)
FlightsOption = Annotated[
    list[Path],
    option(
        '--flight', 'FLIGHT', 'recording with a memory, or the memory; repeatable', exists=True
    ),
]
EncoderOption = Annotated[
    str,
    option('--encoder', 'FOLDER', 'what made the memory, if it is no bundle of `model list`'),
]


@memory_app.command('build')
def build(
    recording: Annotated[
        Path,
        argument('RECORDING', 'rosbag2 folder, a single .mcap, or a video', exists=True),
    ],
    detector: Annotated[
        str,
        option('--detector', 'BUNDLE', 'model or bundle that finds \\[what suits the recording]'),
    ] = '',
    encoder: Annotated[
        str,
        option(
            '--encoder',
            'FOLDER',
            'what embeds: a bundle with a recogniser, or networks of your own for pictures and '
            "words (docs/memory.md) \\[the detector's bundle]",
        ),
    ] = '',
) -> None:
    """Keep views of everything that was tracked in a recording, in RECORDING.memory beside it.

    They are pictures of people: mmedge memory forget removes them.
    """
    with plain_errors():
        from mmedge_ros.memory.build import build_memory

        with StatusLine(f'remembering {recording.name}') as line:
            built = build_memory(str(recording), detector, line.advance, encoder=encoder)
    for problem in built.problems:
        say(f'note: {problem}')
    named = f' --encoder {encoder}' if encoder else ''
    say(
        f'{built.items} views: of {built.tracks} tracks, and {built.key_frames} key frames; '
        f'mmedge memory search "person in red" --flight {recording}{named}'
    )
    typer.echo(built.folder)


@memory_app.command('search')
def search(
    flights: FlightsOption,
    words: Annotated[str, argument('[WORDS]', 'such as "person in a red top near a car"')] = '',
    like: Annotated[
        int, option('--like', 'ID', 'more like this view of the first flight; 0: none', min=0)
    ] = 0,
    example: Annotated[
        Path | None,
        existing_file('--example', 'more like what fills this picture (jpg, png)'),
    ] = None,
    near: Annotated[
        str, option('--near', 'X,Y,R', 'within R of this place on the map, m, such as 12,-3.5,10')
    ] = '',
    between: Annotated[
        str, option('--between', 'A,B', 'seen so long after the begin of the recording, s')
    ] = '',
    encoder: EncoderOption = '',
    limit: Annotated[int, option('--limit', 'N', 'so many moments at most', min=1, max=1000)] = 10,
    as_json: Annotated[bool, flag('--json', 'moments as JSON on standard output')] = False,
) -> None:
    """Name the moments of flights that fit words best: when, what, where, and where in the bag."""
    place = _numbers(near, '--near', 'X,Y,R') if near else ()
    span = _numbers(between, '--between', 'A,B') if between else ()
    if place and place[2] <= 0.0:
        raise typer.BadParameter('name a radius above 0 m', param_hint='--near')
    if span and span[0] > span[1]:
        raise typer.BadParameter(f'{between!r} ends before it begins', param_hint='--between')
    if not (words.strip() or like or example or place or span):
        raise typer.BadParameter('say what is looked for', param_hint='WORDS')
    if like and example is not None:
        raise typer.BadParameter('name one of --like and --example')
    with plain_errors():
        from contextlib import ExitStack

        from mmedge_ros.core.data_types import NS_PER_S
        from mmedge_ros.memory.encoders import embedding_by, read_example
        from mmedge_ros.memory.search import SearchRequest, find_moments
        from mmedge_ros.memory.spaces import scorer_for
        from mmedge_ros.memory.store import MemoryReader, memories_of

        bundles = _bundles(encoder)
        request = SearchRequest(
            words,
            read_example(example) if example is not None else b'',
            like,
            near=(place[0], place[1], place[2]) if place else None,
            offsets_ns=(round(span[0] * NS_PER_S), round(span[1] * NS_PER_S)) if span else None,
            limit=limit,
        )
        with ExitStack() as stack:
            memories = [
                stack.enter_context(MemoryReader(folder)) for folder in memories_of(flights)
            ]
            embed = embedding_by(memories[0].header, bundles)
            found = find_moments(memories, request, scorer_for(bundles), embed)
    if as_json:
        content = {**vars(found), 'moments': [_facts(moment) for moment in found.moments]}
        typer.echo(json.dumps(content, indent=2, allow_nan=False))
    else:
        _print(found)


@memory_app.command('page')
def page(
    flights: FlightsOption,
    out: Annotated[
        Path | None, option('--out', 'FILE', 'the page \\[page.html in the memory of the flight]')
    ] = None,
    encoder: EncoderOption = '',
) -> None:
    """Write a page to look at and to search in a browser: one file, which needs no network.

    It shows pictures of people, as the memory does.
    """
    if out is None and len(flights) > 1:
        raise typer.BadParameter('a page of several flights needs --out FILE')
    with plain_errors():
        from mmedge_ros.memory.page import write_memory_page
        from mmedge_ros.memory.store import PAGE, memories_of

        bundles = _bundles(encoder)
        path = out or memories_of(flights)[0] / PAGE
        content = write_memory_page(flights, bundles, path)
    say(f'{len(content.moments)} moments; open the page in a browser')
    if content.left_out:
        say(f'note: {content.left_out} more, which are seen worse, are in the memory alone')
    typer.echo(path)


@memory_app.command('forget')
def forget(
    flights: FlightsOption,
    everything: Annotated[bool, flag('--all', 'all of it')] = False,
    track: Annotated[int, option('--track', 'N', 'one track; 0: none', min=0)] = 0,
    hours: Annotated[
        float, option('--older-than', 'HOURS', 'what was seen longer ago; 0: nothing', min=0.0)
    ] = 0.0,
) -> None:
    """Remove views for good: their bytes are overwritten."""
    if sum((everything, track > 0, hours > 0.0)) != 1:
        raise typer.BadParameter('name one of --all, --track N and --older-than HOURS')
    with plain_errors():
        from mmedge_ros.core.data_types import NS_PER_S
        from mmedge_ros.memory.store import MemoryWriter, memories_of

        for folder in memories_of(flights):
            with MemoryWriter(folder) as writer:
                if everything:
                    count = writer.forget_all()
                elif track:
                    count = writer.forget_track(track)
                else:
                    now_ns = round(datetime.now(timezone.utc).timestamp() * NS_PER_S)
                    count = writer.forget_before(now_ns - round(3600.0 * hours * NS_PER_S))
            say(f'{folder}: {count} views forgotten')


def _bundles(encoder: str) -> list[Path]:
    """Return what may have made a memory: bundles that are here, and what is named.

    :raises EncodingError: if what is named is neither bundle nor pair
    """
    from mmedge_ros.encoding.bundle.default_model import bundle_folders, default_detector
    from mmedge_ros.encoding.pair_description import describe_pair

    named = [default_detector(encoder)] if encoder else []
    for folder in named:
        describe_pair(folder)  # it says what is wrong with it
    return [*bundle_folders(), *named]


def _numbers(text: str, name: str, form: str) -> tuple[float, ...]:
    """Read numbers between commas, as many as the form has.

    :raises BadParameter: if the text says something else
    """
    try:
        numbers = tuple(float(part) for part in text.split(','))
    except ValueError:
        numbers = ()
    is_right = len(numbers) == len(form.split(',')) and all(abs(n) <= 1e9 for n in numbers)
    if not is_right:
        raise typer.BadParameter(f'{text!r} does not read {form}', param_hint=name)
    return numbers


def _facts(moment: Moment) -> dict[str, Any]:
    """Return a moment for other programs: places in m, times in s, null where not known."""
    shown, item = moment.shown, moment.shown.item
    offsets = [view.item.bag_offset_ns for view in moment.views]
    return {
        'flight': moment.flight,
        'id': shown.id,
        'track': item.track_id or None,
        'label': item.label or None,
        'score': moment.score,
        'in_recording_s': [offsets[0] / 1e9, offsets[-1] / 1e9] if min(offsets) >= 0 else None,
        'stamps_ns': [moment.begin_ns, moment.end_ns],
        'place_m': [n if math.isfinite(n) else None for n in item.position],
        'views': [view.id for view in moment.views],
        'beside': moment.beside.id if moment.beside is not None else None,
    }


def _span(moment: Moment) -> str:
    """Say from when to when it was seen: in the recording, or of what was kept in flight, UTC."""
    first, last = moment.views[0].item, moment.views[-1].item
    if min(first.bag_offset_ns, last.bag_offset_ns) >= 0:
        begin, end = first.bag_offset_ns / 1e9, last.bag_offset_ns / 1e9
        return f'{begin:.1f} to {end:.1f} s' if end > begin else f'{begin:.1f} s'
    return f'{datetime.fromtimestamp(first.stamp_ns / 1e9, timezone.utc):%Y-%m-%d %H:%M:%S} UTC'


def _print(found: SearchResult) -> None:
    table = new_table('', 'id', 'flight', 'when', 'what', 'place, m', 'views', 'score')
    for moment in found.moments:
        item = moment.shown.item
        place = f'{item.position.x:.1f}, {item.position.y:.1f}'
        add_row(
            table,
            moment.shown.id,
            moment.flight,
            _span(moment),
            f'{item.label} {item.track_id}' if item.label else 'key frame',
            place if 'nan' not in place else '',
            len(moment.views),
            f'{moment.score:.2f}',
        )
    print_parts(table)
    for note in found.notes:
        say(f'note: {note}')
