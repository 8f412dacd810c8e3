"""Every mechanism of Reminisce beside its control, on crops of scenes that only judge.

Each group of rows holds its controls, with which the others are compared. The crops are those
that `mmedge lab train recogniser --crops` keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Results, Row, Subject, Sums
from mmedge_lab.rivals.reminisce.batching import Way, grouped, one_group, refilled, seconds_of
from mmedge_lab.rivals.reminisce.crop_encoder import (
    BATCH,
    CropEncoder,
    Embedded,
    Exits,
    sureness,
)
from mmedge_lab.rivals.reminisce.exit_choice import (
    ExitPredictor,
    dealt,
    fit_predictor,
    nearest_fixed,
    sure_exits,
)
from mmedge_lab.rivals.reminisce.galleries import (
    FindExamples,
    Found,
    Galleries,
    Gallery,
    Places,
    best_first,
    refining,
)
from mmedge_lab.rivals.reminisce.healing import AllExits, fit_adapter, groups_of, heal, pivoted
from mmedge_lab.rivals.reminisce.layered_loading import loading_figures
from mmedge_lab.rivals.reminisce.refinement import refinements
from mmedge_lab.rivals.reminisce.speculation import AtExits
from mmedge_lab.training.crop_set import (
    CropSet,
    crop_files,
    fitted_on,
    judged,
    learned,
    object_numbers,
    read_crops,
)
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.manifest import Manifest
from mmedge_ros.encoding.classifier_description import EXIT
from mmedge_ros.memory import int4
from mmedge_ros.memory.moment import Vectors

_FIGURES: Mapping[str, Figure] = {
    'words': Figure('words: hit@10', 'words_ten', 'words_asked'),
    'examples': Figure('examples: hit@10', 'examples_ten', 'examples_asked'),
    'right': Figure('right', 'right', 'items'),
    'ms': Figure('ms', 'ms', digits=2),
    'bytes': Figure('bytes', 'bytes', digits=0),
    'per_s': Figure('items/s', 'timed', 'seconds', 0, relative=True),
    'mj': Figure('mJ (model)', 'joules', 'timed', 2, scale=1e3, relative=True),
    'processor': Figure('ms of processor', 'processor_ms', digits=1),
    'peak_mb': Figure('peak MB', 'peak_mb', digits=0),
}
END, PREDICTED, SURE = 'the end', 'predicted exits', 'sure heads'
_DEALT, _FIXED, _AS_IT_IS, _AS_THEY_COME = (
    'dealt to others',
    'one exit',
    'as it is',
    'as they come',
)
_ASKED_AT_END, _COARSE = 'asked at the end', 'coarse'
_DEALS, _FEWEST_SCENES = 5, 2
# Of a busy core, for joules: a model.
WATTS = 3.0


def bench(request: BenchRequest, *, large: str = 'fused_people') -> Bench:
    """Compare the parts of Reminisce with their controls: what is found, time and memory.

    :param large: bundle whose largest camera level is loaded stage by stage; '' leaves that out
    """
    bundle = default_detector(request.detector or 'flight_people')
    folder = request.input(0, 'a folder of crops')
    stages = _large_stages(default_detector(large)) if large else []
    parts = _crops_of(folder)
    if request.quick:
        parts[0] = parts[0].rows(np.arange(min(_QUICK.learned, len(parts[0].crops))))
    scale = _QUICK if request.quick else Scale()

    def rows(_: Results) -> dict[Row, Sequence[Sums]]:
        with TemporaryDirectory() as copies:
            encoder = CropEncoder(bundle, Path(copies))
            fits, margins, judges = (encoder.embed(part, lambda _: None) for part in parts)
            made = PartsBench(encoder, parts[2], judges, fits, margins, scale)
            return made.rows(stages)

    scenes = sorted(set(parts[2].scenes.tolist()))
    return Bench(
        'The parts of Reminisce beside their controls',
        (),
        _FIGURES,
        tuple(Subject(str(scene), seed=str(scene)) for scene in scenes),
        references=(END, _DEALT, _FIXED, _AS_IT_IS, _AS_THEY_COME, _ASKED_AT_END, _COARSE),
        about={
            'bundle': bundle.name,
            'crops': f'{len(parts[2].crops)} judge, {len(parts[0].crops)} are fitted on, '
            f'{len(parts[1].crops)} choose margins',
            'energy': f'{WATTS:g} W times processor time',
        },
        derive=rows,
    )


@dataclass(frozen=True)
class Scale:
    """How much is done: galleries, crops to learn from, items and rounds of timing."""

    galleries: int = 20
    learned: int = 1 << 31
    timed: int = 512
    rounds: int = 5
    pictures: tuple[int, ...] = (8, 32)


_QUICK = Scale(galleries=3, learned=1000, timed=32, rounds=1, pictures=(2,))


@dataclass
class PartsBench:
    """An encoder, crops that judge, and vectors of those that judge, are fitted on, and held out.

    Margins and the gate of healing are chosen on what is held out.
    """

    encoder: CropEncoder
    crops: CropSet
    judged: Embedded
    learned: Embedded
    held: Embedded
    scale: Scale

    def rows(self, large: Sequence[Path]) -> dict[Row, Sequence[Sums]]:
        """Judge every part.

        :param large: stages of a large encoder; none leaves its part out
        :raises EncodingError: if a network fails
        """
        parts = (self._exits, self._chosen, self._healed, self._asked, self._refined, self._times)
        found = [row for part in parts for row in part()]
        found += self._loading(large) if large else ()
        return {Row(name, group=group): sums for group, name, sums in found}

    @cached_property
    def galleries(self) -> Galleries:
        return Galleries(self.judged, self.encoder.space, self.scale.galleries)

    @cached_property
    def held_galleries(self) -> Galleries:
        return Galleries(self.held, self.encoder.space, self.scale.galleries)

    @cached_property
    def predictor(self) -> ExitPredictor:
        first, held = self.learned.taps[0], self.held.taps[0]
        wanted, of_held = self._wanted(self.learned), self._wanted(self.held)
        return fit_predictor(first, wanted, held, of_held, self.judged.exits)

    @cached_property
    def chosen(self) -> dict[str, Exits]:
        """The exits of each item by what chooses them."""
        description = self.encoder.description
        classes, least = len(description.classes), description.exits
        sure = sure_exits(self.judged.logits, classes, least)
        return {PREDICTED: self.predictor.exits(self.judged.taps[0]), SURE: sure}

    @cached_property
    def costs(self) -> NDArray[np.float64]:
        """What an item takes up to each exit (K,), one at a time: medians of the rounds, ms."""
        count = min(self.scale.timed, len(self.crops.crops))
        blobs = self.encoder.blobs(self.crops.rows(np.arange(count)))
        ways = [
            Way('', np.full(count, exit_ + 1, np.int64), one_group, 1)
            for exit_ in range(self.judged.exits)
        ]
        seconds = seconds_of(ways, self.encoder, blobs, self.scale.rounds)
        return np.asarray(1e3 * np.median(seconds, axis=0) / count)

    def _exits(self) -> Iterator[_Found]:
        """Judge every exit with its own head, and its tap as what examples are compared by."""
        for exit_, vectors in enumerate(self.judged.vectors, start=1):
            sums = self._sums(vectors, ms=self.costs[exit_ - 1])
            yield 'exits', self._name(exit_), sums
            if exit_ < self.judged.exits:
                tap = _in_int4(self.judged.taps[exit_ - 1])
                size = int4.row_bytes(tap.shape[1])
                found = self.galleries.examples(_same(tap))
                sums = self._by_scene(None, found, bytes=size)
                yield 'exits', f'{self._name(exit_)}, tap in int4', sums
        usual = self.judged.vectors[-2]
        group = f'store of {self._name(self.judged.exits - 1)}'
        yield group, _AS_IT_IS, self._sums(usual, bytes=usual[0].nbytes)
        size = int4.row_bytes(usual.shape[1])
        yield group, 'in int4', self._sums(_in_int4(usual), bytes=size)

    def _chosen(self) -> Iterator[_Found]:
        """Judge exits that are chosen for every item beside the same ones dealt, and one exit."""
        for name, exits in self.chosen.items():
            ms = float(self.costs[exits - 1].mean())
            yield name, name, self._at(AtExits(self.judged, exits), ms=ms)
            deals = [
                self._at(AtExits(self.judged, dealt(exits, seed)), ms=ms) for seed in range(_DEALS)
            ]
            means = [
                {key: float(np.mean([deal[key] for deal in of])) for key in of[0]}
                for of in zip(*deals, strict=True)
            ]
            yield name, _DEALT, means
            fixed = nearest_fixed(exits, self.costs)
            sums = self._sums(self.judged.vectors[fixed - 1], ms=self.costs[fixed - 1])
            yield name, _FIXED, sums
        wanted = self._wanted(self.judged)
        said = self.predictor.shares(self.judged.taps[0]).argmax(axis=1) + 1
        most = int(np.bincount(wanted).argmax())
        yield 'exit that suffices', 'predicted', self._right(said == wanted)
        yield 'exit that suffices', f'always {self._name(most)}', self._right(wanted == most)

    def _healed(self) -> Iterator[_Found]:
        """Judge adapters that are carried on, beside one for each exit and none."""
        exits = range(1, self.judged.exits)
        fitting = AllExits(self.learned.taps, self.learned.vectors)
        held, of_judged = (AllExits(of.taps, of.vectors) for of in (self.held, self.judged))
        plans = {
            'healed by steps of 1': groups_of(exits, 1),
            'healed by steps of 2': groups_of(exits, 2),
            'healed at the pivot': pivoted(exits, self.chosen[PREDICTED]),
        }
        suites = {
            words: heal(fitting, held, groups, self._held_hits) for words, groups in plans.items()
        }
        for exit_, tap in zip(exits, fitting.taps, strict=True):
            group = f'healing of {self._name(exit_)}'
            yield group, _AS_IT_IS, self._sums(self.judged.vectors[exit_ - 1])
            missing = fitting.vectors[-1] - fitting.vectors[exit_ - 1]
            own = {exit_: fit_adapter(tap, missing)}
            for words, adapters in {'an adapter of its own': own, **suites}.items():
                # Where no group is kept this is as it is.
                yield group, words, self._sums(of_judged.healed(adapters)[exit_ - 1])

    def _asked(self) -> Iterator[_Found]:
        """Judge questions at all depths beside the end only, of items at predicted exits."""
        at, usual = AtExits(self.judged, self.chosen[PREDICTED]), self.judged.vectors[-2]
        finders = {
            ('questions at every depth', _ASKED_AT_END): at.plain,
            ('questions at every depth', 'asked at each exit'): at.matched,
            ('questions at every depth, refined', _ASKED_AT_END): at.plain_refined,
            ('questions at every depth, refined', 'asked at each exit'): at.speculative,
        }
        for (group, name), find in finders.items():
            yield group, name, self._by_scene(None, self.galleries.examples(find))
            # A memory at one exit needs neither.
            yield group, _FIXED, self._by_scene(None, self.galleries.examples(_same(usual)))

    def _refined(self) -> Iterator[_Found]:
        """Judge the best of a coarse exit refined to the last head."""
        target = self.judged.exits - 1
        whole = self.judged.vectors[target - 1]
        for exit_ in range(1, target):
            coarse, group = self.judged.vectors[exit_ - 1], f'refining of {self._name(exit_)}'
            yield group, _COARSE, self._sums(coarse)
            yield group, _FIXED, self._sums(whole)
            for source, made in refinements(self.encoder, self.crops, exit_, target).items():
                words = self.galleries.words(coarse, made.vectors)
                find = partial(_refining, coarse, whole, made.vectors)
                found = self.galleries.examples(find)
                sums = self._by_scene(words, found, bytes=made.bytes, ms=made.ms)
                yield group, f'from {source}', sums

    def _times(self) -> Iterator[_Found]:
        """Time every way through the encoder, in rounds."""
        places = np.random.default_rng(0).permutation(len(self.judged.scenes))[: self.scale.timed]
        count, classes = len(places), len(self.encoder.description.classes)

        def predict(stage: int, made: Any) -> object:
            tap = self.encoder.network.writes[0][0]
            return self.predictor.exits(made[tap]) if stage == 0 else None

        def ask_head(stage: int, made: Any) -> object:
            return sureness(made[EXIT.format(stage + 1)], classes)

        orders = {_AS_THEY_COME: one_group, 'grouped by exit': grouped, 'refilled': refilled}
        ways = {}
        for batch in (1, BATCH):
            group = f'time in batches of {batch}'
            for exit_ in range(1, self.judged.exits + 1):
                exits = np.full(count, exit_, np.int64)
                ways[group, self._name(exit_)] = Way('', exits, one_group, batch)
            for name, decide in ((PREDICTED, predict), (SURE, ask_head)):
                exits = self.chosen[name][places]
                ways[group, name] = Way('', exits, one_group, batch, decide)
                for words, order in orders.items() if batch > 1 else ():
                    ways[f'time of {name}', words] = Way('', exits, order, batch, decide)
        blobs = self.encoder.blobs(self.crops.rows(places))
        seconds = seconds_of(list(ways.values()), self.encoder, blobs, self.scale.rounds)
        for (group, name), taken in zip(ways, seconds.T.tolist(), strict=True):
            rounds = [
                {'timed': float(count), 'seconds': one, 'joules': WATTS * one} for one in taken
            ]
            yield group, name, self._rounds(rounds)

    def _loading(self, large: Sequence[Path]) -> Iterator[_Found]:
        runs = loading_figures(large, self.scale.pictures, self.scale.rounds)
        for (number, way), found in runs.items():
            yield f'a large encoder, {number} pictures', way, self._rounds(found)

    def _sums(self, vectors: Vectors, **facts: float) -> list[Sums]:
        examples = self.galleries.examples(_same(vectors))
        return self._by_scene(self.galleries.words(vectors), examples, **facts)

    def _at(self, at: AtExits, **facts: float) -> list[Sums]:
        """Return what is found of items at their exits, asked at the exit of each."""
        examples = self.galleries.examples(at.matched)
        return self._by_scene(self.galleries.words(at.stored), examples, **facts)

    def _by_scene(self, words: Found | None, examples: Found | None, **facts: float) -> list[Sums]:
        known = {'words': words, 'examples': examples}
        return [
            {
                **{
                    f'{kind}_{column}': float(getattr(found, column)[scene])
                    for kind, found in known.items()
                    if found is not None
                    for column in Found._fields
                },
                # Of no scene: they have no interval.
                **({} if scene else facts),
            }
            for scene in range(len(self.galleries.scenes))
        ]

    def _right(self, right: NDArray[np.bool_]) -> list[Sums]:
        of_scenes = [right[self.judged.scenes == scene] for scene in self.galleries.scenes]
        return [{'right': float(of.sum()), 'items': float(len(of))} for of in of_scenes]

    def _rounds(self, rounds: Sequence[Sums]) -> list[Sums]:
        """Return the mean of rounds, which are no scenes, as that of one: without an interval."""
        mean = {c: float(np.mean([of[c] for of in rounds])) for c in rounds[0]}
        return [mean, *[{}] * (len(self.galleries.scenes) - 1)]

    def _held_hits(self, vectors: Vectors) -> float:
        """Return the mean of hit@10 by words and by example, of the crops held out."""
        words = self.held_galleries.words(vectors)
        examples = self.held_galleries.examples(_same(vectors))
        return (words.hit_at_10 + examples.hit_at_10) / 2.0

    def _wanted(self, crops: Embedded) -> Exits:
        return Galleries(crops, self.encoder.space, 1).first_sufficient(crops.vectors)

    def _name(self, exit_: int) -> str:
        return END if exit_ == self.judged.exits else f'exit {exit_}'


# Group, name and sums of a row.
_Found = tuple[str, str, Sequence[Sums]]


def _crops_of(folder: Path) -> list[CropSet]:
    """Return crops to learn from, to fit margins on, and to judge, those of an object together.

    :raises EvaluationError: if they are of too few scenes
    :raises TrainingError: if there are none
    """
    crops = read_crops(crop_files(folder))
    parts = []
    for of, words in ((learned, 'learn from'), (fitted_on, 'fit margins on'), (judged, 'judge')):
        part = of(crops)
        scenes = len(np.unique(part.scenes))
        if scenes < _FEWEST_SCENES:
            raise EvaluationError(
                f'{scenes} scenes to {words} are too few; take crops of more scenes (`mmedge lab '
                'train recogniser --crops`)'
            )
        parts.append(part.rows(np.argsort(object_numbers(part), kind='stable')))
    return parts


def _large_stages(bundle: Path) -> list[Path]:
    """Return the stages of the level with the most bytes."""
    levels = Manifest(bundle).levels('camera').stages
    chosen = max(levels.values(), key=lambda of: sum(one.path.stat().st_size for one in of))
    if len(chosen) == 1:
        raise EvaluationError(
            f'the levels of {bundle} are single graphs; name a bundle whose camera is in stages, '
            'such as fused_people'
        )
    return [stage.verified().absolute() for stage in chosen]


def _same(vectors: Vectors) -> FindExamples:
    """Return what finds views by examples that are embedded as they are."""
    return lambda gallery: best_first(gallery.rated(vectors, vectors))


def _refining(coarse: Vectors, whole: Vectors, again: Vectors, gallery: Gallery) -> Places:
    """Find by what is coarse, and rate the best again by the whole of the example."""
    order = best_first(gallery.rated(coarse, coarse))
    return refining(order, gallery.rated(whole, again))


def _in_int4(vectors: Vectors) -> Vectors:
    return int4.unpacked(int4.packed(vectors), vectors.shape[1])
