"""The page of a memory: alone, escaped, whole without a script, and it searches as we do."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hand_made_looks import BUNDLE, DESCRIPTION, HEADER, NOTHING, jpeg, look, seen
from hand_made_moments import key_frame, memory_of
from page_outline import PageOutline
from typer.testing import CliRunner

from mmedge_ros.commands.memory import memory_app
from mmedge_ros.core.data_types import NS_PER_S, Box
from mmedge_ros.memory import page
from mmedge_ros.memory.moment import DronePose, FlightPhase, MemoryItem, Spot
from mmedge_ros.memory.page import write_memory_page
from mmedge_ros.memory.query import MemoryQuery, read_query, vocabulary
from mmedge_ros.memory.search import SearchResult, search, taps_of
from mmedge_ros.memory.spaces import scorer_for
from mmedge_ros.memory.store import MemoryReader
from mmedge_ros.report import page as reporting

EVIL = '<script>alert(1)</script>"\'><img src=x onerror=y>'
TEMPLATES = Path(reporting.__file__).parent / 'templates'
NODE = shutil.which('node')
needs_node = pytest.mark.skipif(NODE is None, reason='node is not installed')
HERE = {'position': Spot(10.0, 2.0, 0.0), 'drone': DronePose(0.0, 0.0, 20.0, 0.5)}


def no_look(seconds: float, **changes: Any) -> MemoryItem:
    made = {**NOTHING, 'manifest': HEADER.manifest, 'thumbnail': jpeg(9, (128, 96))}
    made['bag_offset_ns'] = int(seconds * NS_PER_S)
    item: MemoryItem = key_frame(seconds, **{**made, **changes})
    return item


def page_of(folder: Path, *items: MemoryItem, name: str = 'flight') -> PageOutline:
    memory = folder / f'{name}.memory'
    memory_of(memory, *items, header=HEADER).close()
    out = folder / 'page.html'
    write_memory_page([memory], [BUNDLE], out)
    return PageOutline(out.read_text())


def values(outline: PageOutline, tag: str, name: str) -> list[str]:
    return [value for one, other, value in outline.attributes if (one, other) == (tag, name)]


# ------------------------------------------------------------------------ what is on it


def test_moments_are_seen_without_a_script_in_the_order_of_time(tmp_path: Path) -> None:
    outline = page_of(
        tmp_path,
        seen('car white', 2, 6.0, **HERE),
        seen('person red', 1, 2.0, size=20.0, **HERE),
        seen('person red', 1, 5.0, size=60.0, thumbnail=jpeg(200, (32, 60)), **HERE),
        no_look(1.0),
    )
    assert 'key frame 1.0 s' in outline.words
    cards = ['key frame 1.0 s', 'person 1 2.0 to 5.0 s', 'car 2 6.0 s']
    places = [outline.words.index(card) for card in cards]
    assert places == sorted(places)
    assert '3 moments in the order of time' in outline.words
    # The clearest view stands in the card.
    assert values(outline, 'img', 'height') == ['96', '60', '64']
    links = values(outline, 'a', 'href')
    assert [links.count(f'#m{n}') for n in range(3)] == [2, 3, 3]
    assert 'none of them says that something was not there' in outline.words


def test_names_and_labels_from_outside_are_escaped_everywhere(tmp_path: Path) -> None:
    label = EVIL.replace('/', '')[:64]
    name = EVIL.replace('/', '')
    outline = page_of(tmp_path, seen('person red', 1, label=label, **HERE), name=name)
    assert outline.tags.count('img') == 1
    assert outline.tags.count('script') == 2
    (data,) = outline.data
    assert data['flights'][0]['name'] == name
    assert data['flights'][0]['labels'] == [label]


def test_places_are_on_a_map_with_y_up_and_times_on_a_line(tmp_path: Path) -> None:
    drone = DronePose(0.0, 0.0, 20.0, 0.0)
    outline = page_of(
        tmp_path,
        seen('person red', 1, 2.0, position=Spot(0.0, 10.0, 0.0), drone=drone),
        seen('person blue', 2, 4.0, position=Spot(20.0, -10.0, 0.0), drone=drone),
        seen('dog brown', 3, 8.0),
    )
    spots = {}
    for value in values(outline, 'a', 'style'):
        parts = dict(part.split(':') for part in value.replace(' ', '').rstrip(';').split(';'))
        kind = 'bar' if 'width' in parts else 'dot'
        spots.setdefault(kind, []).append(
            [float(parts[k][:-1]) for k in ('left', 'top') if '%' in parts[k]]
        )
    (left_1, top_1), (left_2, top_2) = spots['dot']
    assert left_1 < left_2
    assert top_1 < top_2
    assert all(0.0 < value < 100.0 for value in (left_1, left_2, top_1, top_2))
    assert spots['bar'] == [[25.0], [50.0], [100.0]]
    # It heads along x: to the right.
    assert any('rotate: 90.0deg' in value for value in values(outline, 'span', 'style'))


def test_of_a_large_memory_the_page_holds_what_is_seen_best_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, 'MOST_ON_PAGE', 2)
    views = [seen('person red', n, n, size=10.0 * n) for n in range(1, 6)]
    outline = page_of(tmp_path, *views)
    assert 'person 5' in outline.words
    assert 'person 3' not in outline.words
    assert '3 more are in the memory alone' in outline.words
    monkeypatch.setattr(page, 'MOST_PICTURE_BYTES', len(jpeg(0)) + 50)
    assert page_of(tmp_path / 'b', *views).tags.count('img') == 1


# ------------------------------------------------------------------------- the command


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(memory_app, list(map(str, words)), env={'NO_COLOR': '1'})
    return result.exit_code, result.stdout.strip(), result.stderr


def test_the_page_of_one_flight_lies_in_its_memory_until_something_is_forgotten(
    tmp_path: Path,
) -> None:
    memory = tmp_path / 'flight.memory'
    memory_of(memory, seen('person red', 1), seen('car red', 2), header=HEADER).close()
    code, out, err = run('page', '--flight', tmp_path / 'flight.memory')
    assert (code, out) == (0, str(memory / 'page.html'))
    assert '2 moments' in err
    assert run('forget', '--flight', memory, '--track', 1)[0] == 0
    assert not (memory / 'page.html').exists()


# ---------------------------------------------------------------------------- searching


def crowd(chance: random.Random, first: int) -> list[MemoryItem]:
    """Views of many things that stand about, move, are near each other or of unknown place."""
    unknown = Spot(), Spot()
    items = [no_look(float(n), brightness=0.1 * n) for n in range(10)]
    for track in range(first, first + 40):
        kind = chance.choice(DESCRIPTION.classes)
        attributes = {
            part: chance.choice(choices)
            for part, choices in DESCRIPTION.attributes.items()
            if chance.random() < 0.7
        }
        here = chance.uniform(-20.0, 20.0), chance.uniform(-20.0, 20.0)
        for _ in range(chance.randint(1, 4)):
            place = Spot(here[0] + chance.uniform(-1.0, 1.0), here[1], 0.0)
            speed = Spot(chance.choice([0.0, 0.1, -1.0, 2.5]), chance.choice([0.0, 0.2, 1.1]), 0.0)
            left = chance.uniform(0.0, 500.0)
            items.append(
                seen(
                    kind,
                    track,
                    chance.randint(0, 40) / 4,
                    vector=look(kind, **attributes),
                    position=chance.choice([place, place, place, unknown[0]]),
                    velocity=chance.choice([speed, speed, speed, unknown[1]]),
                    drone=chance.choice([DronePose(-30.0, 1.0, 20.0), DronePose()]),
                    box=Box(left, 50.0, left + 40.0, 100.0),
                    brightness=chance.random(),
                    phase=chance.choice(list(FlightPhase)),
                    exit=chance.choice([1, 3, 3]),
                )
            )
    return items


QUESTIONS = [
    'person in a red top and blue trousers',
    'white van near a woman with a backpack',
    'a person without a cap, left of a green car',
    'someone to the right of a dog next to a cyclist',
    'children walking away at night while hovering',
    'not red, not a car and a zebra behind a red car',
    'light blue car in the dark by day',
    'constructor __proto__ toString',
    'ＰＥＲＳＯＮ in RED, t shirt; éleft of',
    'red',
    'walking',
    'without',
    '',
]


def node(*arguments: object) -> str:
    """What a program in JavaScript writes."""
    assert NODE is not None
    words = [NODE, *map(str, arguments)]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def questions(chance: random.Random) -> list[str]:
    words = [
        word
        for part in (
            'labels',
            'colours',
            'parts',
            'motions',
            'lights',
            'phases',
            'relations',
            'other_relations',
            'negations',
            'shades',
            'silent',
        )
        for word in vocabulary()[part]
    ]
    words += ['left of', 'next to', 'flubber', 'person', 'person', 'car', 'red', 'near', "o'hara"]
    return QUESTIONS + [
        ' '.join(chance.choices(words, k=chance.randint(1, 6))) for _ in range(120)
    ]


def answers_of(
    data: dict[str, Any], folder: Path, asked: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What the script of a page with these data answers."""
    code = (TEMPLATES / 'memory_search.js.j2').read_text()
    script = folder / 'asked.js'
    script.write_text(
        f'{code}\nconst memory = memorySearch.open({json.dumps(data)});\n'
        f'const asked = {json.dumps(asked)};\n'
        'console.log(JSON.stringify(asked.map(({ text, like }) => {\n'
        '  const found = memorySearch.search(memory, text, like);\n'
        '  const ids = one => one.rows.map(row => memory.flights[one.flight].items.id[row]);\n'
        '  return { notes: found.notes, rated: found.rated,\n'
        '    understood: found.parsed.isUnderstood,\n'
        '    moments: found.moments.map(one => [one.flight, ids(one), one.score]) };\n'
        '})));\n'
    )
    answers: list[dict[str, Any]] = json.loads(node(script))
    return answers


class Asked:
    """Two flights, their page's data, and what node says of questions."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        chance = random.Random(4)
        places = [folder / 'one.memory', folder / 'two.memory']
        self.memories: list[MemoryReader] = [
            stack.enter_context(memory_of(place, *crowd(chance, 1), header=HEADER))
            for place in places
        ]
        self.find = scorer_for([BUNDLE])
        out = folder / 'page.html'
        write_memory_page(places, [BUNDLE], out)
        self.page = out.read_text()
        (self.data,) = PageOutline(self.page).data
        self.questions = questions(chance)
        self.labels = {str(one) for m in self.memories for one in m.table().texts['label']}

    def by_page(self, folder: Path, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return answers_of(self.data, folder, asked)

    def by_us(self, query: MemoryQuery) -> SearchResult:
        return search(self.memories, query, self.find, 1000)


def same(answer: dict[str, Any], ours: SearchResult) -> None:
    names = {'one': 0, 'two': 1}
    expected = {
        (names[moment.flight], tuple(sorted(view.id for view in moment.views))): moment.score
        for moment in ours.moments
    }
    theirs = {(flight, tuple(sorted(ids))): score for flight, ids, score in answer['moments']}
    assert theirs == pytest.approx(expected, abs=1e-4)
    scores = [score for *_, score in answer['moments']]
    assert scores == sorted(scores, reverse=True)
    assert answer['notes'] == list(ours.notes[:-1])
    assert answer['rated'] == ours.rated


@pytest.fixture(scope='module')
def asked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ExitStack() as stack:
        yield Asked(tmp_path_factory.mktemp('asked'), stack)


@needs_node
def test_the_page_answers_any_words_as_the_search_does(asked: Asked, tmp_path: Path) -> None:
    answers = asked.by_page(tmp_path, [{'text': text} for text in asked.questions])
    found = 0
    for text, answer in zip(asked.questions, answers, strict=True):
        parsed = read_query(text, asked.labels)
        assert answer['understood'] == parsed.is_understood, text
        same(answer, asked.by_us(MemoryQuery(parsed)))
        found += len(answer['moments'])
    assert found > 1000


@needs_node
def test_the_page_finds_more_like_a_moment_as_the_search_does(
    asked: Asked, tmp_path: Path
) -> None:
    memory, flight = asked.memories[0], asked.data['flights'][0]
    texts = ['', 'red person', 'dog near a person', 'white car']
    for number in (15, 40):
        like = {
            'flight': 0,
            'moment': flight['items']['moment'][flight['items']['id'].index(number)],
        }
        answers = asked.by_page(tmp_path, [{'text': text, 'like': like} for text in texts])
        for text, answer in zip(texts, answers, strict=True):
            parsed = read_query(text, asked.labels)
            same(answer, asked.by_us(MemoryQuery(parsed, taps_of(memory, number))))


@needs_node
def test_a_question_has_a_command_that_a_shell_reads_as_it_stands(tmp_path: Path) -> None:
    (data,) = page_of(tmp_path, seen('person red', 1), name='-my flight').data
    asked = [
        'how many people within 20 m',
        f"is {EVIL} there; $(reboot) `x` !! 'y'?",
        '-n was it?',
        'what\n\x1b[31m\u202ewas it',
        'person in a red top',
    ]
    script = tmp_path / 'commands.js'
    script.write_text(
        f'{(TEMPLATES / "memory_search.js.j2").read_text()}\n'
        f'const memory = {json.dumps(data)};\n'
        f'const asked = {json.dumps(asked)};\n'
        'console.log(JSON.stringify(asked.map(text => memorySearch.commands(memory, text))));\n'
    )
    *commands, none = json.loads(node(script))
    assert none == []
    begin = ['mmedge', 'ask', '--flight', './-my flight', '--']
    read = [shlex.split(command) for (command,) in commands]
    assert read == [[*begin, text] for text in (*asked[:3], 'what [31m was it')]
