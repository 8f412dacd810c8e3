"""The parts of Reminisce beside their controls, on crops of scenes that only judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.reminisce.crop_encoder import CropEncoder, Embedded
from mmedge_lab.rivals.reminisce.exit_choice import (
    ExitPredictor,
    Exits,
    dealt,
    first_sufficient,
    fit_predictor,
    nearest_fixed,
    sure_exits,
)
from mmedge_lab.rivals.reminisce.galleries import (
    OBJECTS,
    FindExamples,
    Found,
    Galleries,
    Gallery,
    Places,
    best_first,
    refining,
)
from mmedge_lab.rivals.reminisce.heads import (
    MOST_LOST,
    HealingData,
    groups_of,
    heal,
    pivoted,
    ridge,
    ridge_to_facts,
)
from mmedge_lab.rivals.reminisce.judging import Judging, worth_flying
from mmedge_lab.rivals.reminisce.layered_loading import loading_figures
from mmedge_lab.rivals.reminisce.refinement import INT4, THUMBNAIL, WIDER, refinements
from mmedge_lab.rivals.reminisce.speculation import AtExits
from mmedge_lab.rivals.reminisce.throughput import PREDICTED, SURE, stage_ms, throughput
from mmedge_lab.training import Report, part_of
from mmedge_lab.training.crop_set import (
    CropSet,
    fitted_on,
    judged,
    learned,
    object_numbers,
    read_crops,
)
from mmedge_ros.encoding.bundle.manifest import Manifest
from mmedge_ros.memory import int4
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.records.plain_values import plain_values

# So many of the objects that are rated best are refined.
BEST = 20
RANK = 8
_DEALS = 5
# What is stored to refine from, beside what is stored anyway; float16 and pictures are bounds.
_CONTROLS = {INT4: (THUMBNAIL,), WIDER: (THUMBNAIL,)}
_DIGITS = 5
_FEWEST_SCENES = 2


@dataclass(frozen=True)
class Scale:
    """How much is done: galleries, crops to learn from (0: all), items and rounds of timing."""

    galleries: int = 20
    learned: int = 0
    timed: int = 512
    rounds: int = 5
    pictures: tuple[int, ...] = (8, 32)


QUICK = Scale(galleries=3, learned=1000, timed=32, rounds=1, pictures=(2,))


@dataclass(frozen=True)
class PartsBench:
    """What is benched: an encoder, and crops that judge, with their vectors at every exit.

    ``learned`` and ``held`` are what is fitted on and what margins and gates are judged by.
    """

    encoder: CropEncoder
    crops: CropSet
    judged: Embedded
    learned: Embedded
    held: Embedded
    scale: Scale
    watts: float

    def report(self, large: Sequence[Path], on_progress: Report) -> dict[str, Any]:
        """Judge every part; return the figures as JSON holds them.

        :param large: stages of a large encoder; none leaves its part out
        :raises EncodingError: if a network fails
        """
        judging = Judging(self.galleries.scenes.tolist())
        self._fixed(judging)
        on_progress(0.1, 'exits')
        self._chosen(judging)
        on_progress(0.2, 'healing')
        healing = self._healed(judging)
        on_progress(0.3, 'speculation')
        self._asked(judging)
        on_progress(0.4, 'refinement')
        self._refined(judging)
        on_progress(0.6, 'time')
        chosen = {PREDICTED: self.predicted, SURE: self.sure}
        places = np.random.default_rng(0).permutation(len(self.judged.scenes))[: self.scale.timed]
        times = throughput(
            self.encoder,
            self.encoder.blobs(self.crops.rows(places)),
            {name: exits[places] for name, exits in chosen.items()},
            self.predictor,
            self.scale.rounds,
            self.watts,
            lambda share: on_progress(0.6 + 0.2 * share, 'time'),
        )
        loading = loading_figures(
            large,
            self.scale.pictures if large else (),
            self.scale.rounds,
            lambda share: on_progress(0.8 + 0.2 * share, 'loading'),
        )
        values: dict[str, Any] = plain_values(
            {
                'judged': len(self.judged.scenes),
                'objects': len(np.unique(self.judged.objects)),
                'scenes': len(self.galleries.scenes),
                'learned': len(self.learned.scenes),
                'held': len(self.held.scenes),
                'gallery': min(OBJECTS, len(np.unique(self.judged.objects))),
                'galleries': self.scale.galleries,
                'rounds': self.scale.rounds,
                'watts': self.watts,
                'energy': 'a model: processor time times watts, not measured',
                'stage_ms': self.stage_ms,
                'predictor': self._predictor_figures(),
                'exits': {name: _shares(exits, self.judged) for name, exits in chosen.items()},
                'healing': healing,
                'rows': judging.rows(),
                'comparisons': (compared := judging.comparisons()),
                'worth_flying': worth_flying(compared),
                'throughput': times,
                'loading': loading,
            },
            _DIGITS,
        )
        return values

    @cached_property
    def galleries(self) -> Galleries:
        return Galleries(self.judged, self.encoder.space, self.scale.galleries)

    @cached_property
    def held_galleries(self) -> Galleries:
        return Galleries(self.held, self.encoder.space, self.scale.galleries)

    @cached_property
    def wanted(self) -> tuple[Exits, Exits, Exits]:
        """The exits that suffice, of crops that are learned from, held out, and judged."""
        return (
            self._wanted(self.learned),
            self._wanted(self.held),
            self._wanted(self.judged),
        )

    @cached_property
    def predictor(self) -> ExitPredictor:
        of_learned, of_held, _ = self.wanted
        first, held = self.learned.taps[0], self.held.taps[0]
        return fit_predictor(first, of_learned, held, of_held, self.judged.exits)

    @cached_property
    def predicted(self) -> Exits:
        return self.predictor.exits(self.judged.taps[0])

    @cached_property
    def sure(self) -> Exits:
        description = self.encoder.description
        classes = len(description.classes)
        return sure_exits(self.judged.logits, classes, description.exits)

    @cached_property
    def stage_ms(self) -> list[float]:
        some = self.crops.rows(np.arange(min(self.scale.timed, len(self.crops.crops))))
        return stage_ms(self.encoder, self.encoder.blobs(some), self.scale.rounds)

    def _fixed(self, judging: Judging) -> None:
        """Judge every exit with its own head, with heads in closed form, and its tap itself."""
        last = self.judged.exits
        for exit_, vectors in enumerate(self.judged.vectors, start=1):
            name = self._name(exit_)
            self._row(judging, 'a', name, vectors, ms=sum(self.stage_ms[:exit_]))
            if exit_ == last:
                continue
            judging.compare(name, self._name(last))
            tap, learned = self.judged.taps[exit_ - 1], self.learned
            to_end = ridge(learned.taps[exit_ - 1], learned.vectors[-1])
            to_facts = ridge_to_facts(learned.taps[exit_ - 1], learned.facts, self.encoder.space)
            for words, head in (('to the end', to_end), ('to the facts', to_facts)):
                self._row(judging, 'a', f'{name}, ridge {words}', head(tap))
                judging.compare(f'{name}, ridge {words}', name)
            self._tap(judging, name, tap)

    def _tap(self, judging: Judging, name: str, tap: Vectors) -> None:
        """Judge a tap as what examples are compared by; no word has a place in it."""
        stored = _in_int4(tap)
        asked = f'{name}, tap in int4'
        judging.add(
            'a', asked, self._by_example(_same(stored)), bytes=int4.row_bytes(tap.shape[1])
        )
        for control in dict.fromkeys((name, self._name(self.judged.exits - 1))):
            judging.compare(asked, control)

    def _chosen(self, judging: Judging) -> None:
        """Judge exits that are chosen for every item beside the same ones dealt, and one exit."""
        costs = np.cumsum(self.stage_ms)
        for name, exits in ((PREDICTED, self.predicted), (SURE, self.sure)):
            ms = float(costs[exits - 1].mean())
            judging.add('b', name, self._at_exits(exits), ms=ms)
            deals = [self._at_exits(dealt(exits, seed)) for seed in range(_DEALS)]
            control = f'{name}, dealt to others'
            judging.add('b', control, {of: _sum([d[of] for d in deals]) for of in deals[0]}, ms=ms)
            judging.compare(name, control)
            judging.compare(name, self._name(nearest_fixed(exits, costs)))

    def _healed(self, judging: Judging) -> dict[str, Any]:
        """Judge adapters that are carried on, beside one for each exit and none."""
        exits = range(1, self.judged.exits)
        fitting = HealingData(self.learned.taps, self.learned.vectors)
        held = HealingData(self.held.taps, self.held.vectors)
        plans = {
            'step 1': groups_of(exits, 1),
            'step 2': groups_of(exits, 2),
            'pivot': pivoted(exits, self.predicted),
        }
        for exit_ in exits:
            tap = self.learned.taps[exit_ - 1]
            missing = self.learned.vectors[-1] - self.learned.vectors[exit_ - 1]
            added = ridge(tap, missing, RANK)(self.judged.taps[exit_ - 1])
            own = self.judged.vectors[exit_ - 1] + added
            name = f'{self._name(exit_)}, adapter of its own'
            self._row(judging, 'c', name, own)
            for control in (self._name(exit_), f'{self._name(exit_)}, tap in int4'):
                judging.compare(name, control)
        report: dict[str, Any] = {'rank': RANK, 'most_lost': MOST_LOST, 'plans': {}}
        for words, groups in plans.items():
            suite = heal(fitting, held, groups, RANK, self._held_hits)
            report['plans'][words] = [tried._asdict() for tried in suite.tried]
            healed = suite.healed(self.judged.taps, self.judged.vectors)
            # Below the first adapter nothing is changed.
            for exit_ in range(min(suite.adapters, default=self.judged.exits), self.judged.exits):
                name = f'{self._name(exit_)}, healed, {words}'
                self._row(judging, 'c', name, healed[exit_ - 1])
                judging.compare(name, self._name(exit_))
                judging.compare(name, f'{self._name(exit_)}, adapter of its own')
        return report

    def _asked(self, judging: Judging) -> None:
        """Judge questions at all depths beside the end only, of items at predicted exits."""
        stored = self.judged.at(self.predicted)
        at = AtExits(self.judged, self.predicted, stored, self.judged.vectors[-1])
        finders = {
            'asked at the end': at.plain,
            'asked at each exit': at.matched,
            'asked at the end, refined': at.plain_refined,
            'asked at each exit, refined': at.speculative,
        }
        for name, find in finders.items():
            judging.add('d', name, self._by_example(find))
        plain, matched, plain_refined, speculative = finders
        judging.compare(matched, plain)
        judging.compare(speculative, plain_refined)
        # A memory at one exit needs neither.
        for name in (matched, speculative):
            judging.compare(name, self._name(self.judged.exits - 1))
        scores = self.galleries.scores(stored)
        judging.add('d', 'scores as they are', {'words': self.galleries.words(scores)})
        even = self.galleries.words(scores, self.predicted)
        judging.add('d', 'one scale for each exit', {'words': even})
        judging.compare('one scale for each exit', 'scores as they are')

    def _refined(self, judging: Judging) -> None:
        """Judge refinement of the best candidates to the last head, from what is stored."""
        target = self.judged.exits - 1
        whole = self.judged.vectors[target - 1]
        for exit_ in range(1, target):
            coarse = self.judged.vectors[exit_ - 1]
            name = self._name(exit_)
            for source, refined in refinements(self.encoder, self.crops, exit_).items():
                again = refined.vectors[target]
                words = self.galleries.words(
                    self.galleries.scores(coarse), refined=self.galleries.scores(again), best=BEST
                )
                by_example = self._by_example(partial(_refining, coarse, whole, again))
                row = f'{name}, refined from {source}'
                facts = {'bytes': refined.bytes, 'ms': refined.ms}
                judging.add('e', row, {'words': words, **by_example}, **facts)
                for control in _CONTROLS.get(source, ()):
                    judging.compare(row, f'{name}, refined from {control}')
                if source in (THUMBNAIL, INT4):
                    judging.compare(row, name)
                    # What is embedded so far at once needs no refinement.
                    judging.compare(row, self._name(target))
        quarter = f'{self._name(target)}, vectors in int4'
        self._row(judging, 'e', quarter, _in_int4(whole), bytes=int4.row_bytes(whole.shape[1]))
        judging.compare(quarter, self._name(target))

    def _row(self, judging: Judging, part: str, name: str, vectors: Vectors, **facts: Any) -> None:
        words = self.galleries.words(self.galleries.scores(vectors))
        found = {'words': words, **self._by_example(_same(vectors))}
        judging.add(part, name, found, **facts)

    def _at_exits(self, exits: Exits) -> dict[str, Found]:
        """Return what is found of items at these exits, asked at the exit of each."""
        stored = self.judged.at(exits)
        at = AtExits(self.judged, exits, stored, self.judged.vectors[-1])
        words = self.galleries.words(self.galleries.scores(stored))
        return {'words': words, **self._by_example(at.matched)}

    def _by_example(self, find: FindExamples) -> dict[str, Found]:
        return {
            'examples': self.galleries.examples(find),
            'siblings': self.galleries.among_siblings(find),
        }

    def _held_hits(self, vectors: Vectors) -> float:
        """Return the mean of hit@10 by words and by example, of the crops held out."""
        galleries = self.held_galleries
        words = galleries.words(galleries.scores(vectors))
        return (words.hit_at_10 + galleries.examples(_same(vectors)).hit_at_10) / 2.0

    def _wanted(self, crops: Embedded) -> Exits:
        galleries = Galleries(crops, self.encoder.space, 1)
        return first_sufficient([galleries.scores(of) for of in crops.vectors], galleries.fits)

    def _predictor_figures(self) -> dict[str, Any]:
        """Return how often the predictor is right, beside always saying what is most frequent."""
        wanted = self.wanted[2]
        said = self.predictor.shares(self.judged.taps[0]).argmax(axis=1) + 1
        most = np.bincount(self.wanted[0]).argmax()
        return {
            'right': float(np.mean(said == wanted)),
            'most_frequent_right': float(np.mean(wanted == most)),
            'late_enough': float(np.mean(self.predicted >= wanted)),
            'dealt_late_enough': float(np.mean(dealt(self.predicted, 0) >= wanted)),
            'margin': self.predictor.margin,
            'wanted': _shares(wanted, self.judged),
        }

    def _name(self, exit_: int) -> str:
        return 'end' if exit_ == self.judged.exits else f'exit {exit_}'


def run_parts_bench(
    bundle: Path, folder: Path, large: Path | None, scale: Scale, watts: float, report: Report
) -> dict[str, Any]:
    """Bench the parts of a flight memory on a folder of crops of simulated scenes.

    :param large: bundle whose largest camera level is in stages, for loading them one by one
    :raises EvaluationError: if the crops are of too few scenes, or a bundle does not suit
    :raises TrainingError: if crops cannot be read
    :raises EncodingError: if a network cannot be opened or fails
    """
    files = sorted(folder.glob('crops_*.npz'))
    if not files:
        raise EvaluationError(
            f'{folder} holds no crops; name the folder that `mmedge lab train recogniser --crops` '
            'keeps'
        )
    stages = _large_stages(large) if large is not None else []
    crops = read_crops(files)
    parts = [_by_object(of(crops)) for of in (learned, fitted_on, judged)]
    for part, words in zip(parts, ('learn from', 'fit margins on', 'judge'), strict=True):
        if len(np.unique(part.scenes)) < _FEWEST_SCENES:
            raise EvaluationError(
                f'{len(np.unique(part.scenes))} scenes to {words} are too few; take crops of more '
                'scenes (`mmedge lab train recogniser --crops`)'
            )
    if scale.learned:
        parts[0] = parts[0].rows(np.arange(min(scale.learned, len(parts[0].crops))))
    with TemporaryDirectory() as copies:
        encoder = CropEncoder(bundle, Path(copies))
        embedded = []
        for place, part in enumerate(parts):
            begin, end = 0.3 * place / len(parts), 0.3 * (place + 1) / len(parts)
            on_share = partial(_on_share, part_of(report, begin, end), 'embedding crops')
            embedded.append(encoder.embed(part, on_share))
        bench = PartsBench(encoder, parts[2], embedded[2], embedded[0], embedded[1], scale, watts)
        return bench.report(stages, part_of(report, 0.3, 1.0))


def _on_share(report: Report, words: str, share: float) -> None:
    report(share, words)


def _large_stages(bundle: Path) -> list[Path]:
    """Return the stages of the level with the most bytes."""
    levels = Manifest(bundle).levels('camera').stages
    chosen = max(levels.values(), key=lambda of: sum(one.path.stat().st_size for one in of))
    if len(chosen) < _FEWEST_SCENES:
        raise EvaluationError(
            f'the levels of {bundle} are single graphs; name a bundle whose camera is in stages, '
            'such as fused_people'
        )
    return [stage.verified().absolute() for stage in chosen]


def _by_object(crops: CropSet) -> CropSet:
    """Return crops with those of one object one after another."""
    return crops.rows(np.argsort(object_numbers(crops), kind='stable'))


def _same(vectors: Vectors) -> FindExamples:
    """Return what finds views by examples that are embedded as they are."""
    return lambda gallery: best_first(gallery.rated(vectors, vectors))


def _refining(coarse: Vectors, whole: Vectors, again: Vectors, gallery: Gallery) -> Places:
    """Find by what is coarse, and rate the best again by the whole of the example."""
    order = best_first(gallery.rated(coarse, coarse))
    return refining(order, gallery.rated(whole, again), BEST)


def _in_int4(vectors: Vectors) -> Vectors:
    return int4.unpacked(int4.packed(vectors), vectors.shape[1])


def _sum(parts: Sequence[Found]) -> Found:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def _shares(exits: Exits, crops: Embedded) -> list[float]:
    return [float(np.mean(exits == exit_)) for exit_ in range(1, crops.exits + 1)]
