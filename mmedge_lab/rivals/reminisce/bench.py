"""Every mechanism of Reminisce beside its control, on crops of scenes that only judge.

The rows of a part are named by its letter: a the exits, b exits that are chosen for each item, c
healing, d questions at every depth, e refinement and the store in four bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.flight_bootstrap import Drawings
from mmedge_lab.judging.flight_sums import Figure, SummedFlights, Sums
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
from mmedge_lab.rivals.reminisce.refinement import ACTIVATION, THUMBNAIL, refinements
from mmedge_lab.rivals.reminisce.speculation import AtExits
from mmedge_lab.training import OnShare, Report, part_of
from mmedge_lab.training.crop_set import (
    CropSet,
    fitted_on,
    judged,
    learned,
    object_numbers,
    read_crops,
)
from mmedge_ros.encoding.bundle.manifest import Manifest
from mmedge_ros.encoding.classifier_description import EXIT
from mmedge_ros.memory import int4
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.records.plain_values import plain_values

FIGURES = {
    'words': Figure('words_ten', 'words_asked'),
    'examples': Figure('examples_ten', 'examples_asked'),
}
PREDICTED, SURE = 'predicted exits', 'sure heads'
_DEALS, _DIGITS, _FEWEST_SCENES = 5, 5, 2


@dataclass(frozen=True)
class Scale:
    """How much is done: galleries, crops to learn from (0: all), items and rounds of timing."""

    galleries: int = 20
    learned: int = 0
    timed: int = 512
    rounds: int = 5
    pictures: tuple[int, ...] = (8, 32)


QUICK = Scale(galleries=3, learned=1000, timed=32, rounds=1, pictures=(2,))


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
    watts: float
    _sums: dict[str, Sequence[Sums]] = field(default_factory=dict)
    _facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    _pairs: list[tuple[str, str]] = field(default_factory=list)
    _kept_groups: dict[str, int] = field(default_factory=dict)

    def report(self, large: Sequence[Path], on_progress: Report) -> dict[str, Any]:
        """Judge every part; return the figures as JSON holds them.

        :param large: stages of a large encoder; none leaves its part out
        :raises EncodingError: if a network fails
        """
        parts = (self._exits, self._chosen, self._healed, self._asked, self._refined)
        for place, part in enumerate(parts):
            on_progress(0.1 * place, 'what is found')
            part()
        times = self._times(lambda share: on_progress(0.5 + 0.3 * share, 'time'))
        rounds, numbers = self.scale.rounds, self.scale.pictures if large else ()
        loading = loading_figures(
            large, numbers, rounds, lambda share: on_progress(0.8 + 0.2 * share, 'loading')
        )
        drawings = Drawings.of(self.galleries.scenes.tolist())
        summed = SummedFlights(self._sums, drawings, FIGURES)
        wanted = self._wanted(self.judged)
        said = self.predictor.shares(self.judged.taps[0]).argmax(axis=1) + 1
        values: dict[str, Any] = plain_values(
            {
                'crops': {
                    name: len(crops.scenes)
                    for name, crops in (
                        ('judged', self.judged),
                        ('learned', self.learned),
                        ('held', self.held),
                    )
                },
                'objects': len(np.unique(self.judged.objects)),
                'scenes': len(self.galleries.scenes),
                'predictor_right': float(np.mean(said == wanted)),
                'most_frequent_right': float(np.bincount(wanted).max() / len(wanted)),
                'healed_groups_kept': self._kept_groups,
                'rows': {
                    name: {
                        **self._facts[name],
                        **{kind: summed.estimate(name, kind)._asdict() for kind in FIGURES},
                    }
                    for name in self._sums
                },
                'comparisons': [
                    {
                        'row': name,
                        'control': control,
                        **{
                            kind: summed.difference(name, control, kind)._asdict()
                            for kind in FIGURES
                        },
                    }
                    for name, control in self._pairs
                ],
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
    def predictor(self) -> ExitPredictor:
        first, held = self.learned.taps[0], self.held.taps[0]
        wanted, of_held = self._wanted(self.learned), self._wanted(self.held)
        return fit_predictor(first, wanted, held, of_held, self.judged.exits)

    @cached_property
    def predicted(self) -> Exits:
        return self.predictor.exits(self.judged.taps[0])

    @cached_property
    def sure(self) -> Exits:
        description = self.encoder.description
        return sure_exits(self.judged.logits, len(description.classes), description.exits)

    @cached_property
    def costs(self) -> NDArray[np.float64]:
        """What an item takes up to each exit (K,), one at a time: medians of the rounds, ms."""
        count = min(self.scale.timed, len(self.crops.crops))
        blobs = self.encoder.blobs(self.crops.rows(np.arange(count)))
        ways = [
            Way('', np.full(count, exit_ + 1, np.int64), one_group, 1)
            for exit_ in range(self.judged.exits)
        ]
        seconds = seconds_of(ways, self.encoder, blobs, self.scale.rounds, lambda _: None)
        return np.asarray(1e3 * np.median(seconds, axis=0) / count)

    def _exits(self) -> None:
        """Judge every exit with its own head, and its tap as what examples are compared by."""
        last = self.judged.exits
        for exit_, vectors in enumerate(self.judged.vectors, start=1):
            name = self._name(exit_)
            self._row(name, vectors, ms=self.costs[exit_ - 1])
            if exit_ < last:
                self._pairs.append((name, self._name(last)))
                tap = _in_int4(self.judged.taps[exit_ - 1])
                size = int4.row_bytes(tap.shape[1])
                self._add(f'{name}, tap in int4', examples=_same(tap), bytes=size)
                self._pairs.append((f'{name}, tap in int4', self._name(last - 1)))

    def _chosen(self) -> None:
        """Judge exits that are chosen for every item beside the same ones dealt, and one exit."""
        for name, exits in ((f'b {PREDICTED}', self.predicted), (f'b {SURE}', self.sure)):
            others = [dealt(exits, seed) for seed in range(_DEALS)]
            for row, chosen in ((name, [exits]), (f'{name}, dealt to others', others)):
                found = [self._found_at(AtExits(self.judged, one)) for one in chosen]
                self._sums[row] = [
                    {key: sum(flight[key] for flight in of) for key in of[0]}
                    for of in zip(*found, strict=True)
                ]
                self._facts[row] = {'ms': float(self.costs[exits - 1].mean())}
            self._pairs.append((name, f'{name}, dealt to others'))
            self._pairs.append((name, self._name(nearest_fixed(exits, self.costs))))

    def _healed(self) -> None:
        """Judge adapters that are carried on, beside one for each exit and none."""
        exits = range(1, self.judged.exits)
        fitting = AllExits(self.learned.taps, self.learned.vectors)
        held, of_judged = (AllExits(of.taps, of.vectors) for of in (self.held, self.judged))
        plans = {
            'by steps of 1': groups_of(exits, 1),
            'by steps of 2': groups_of(exits, 2),
            'at the pivot': pivoted(exits, self.predicted),
        }
        adapters = {
            f'c {self._name(exit_)[2:]}, adapter of its own': (
                exit_,
                {exit_: fit_adapter(tap, fitting.vectors[-1] - fitting.vectors[exit_ - 1])},
            )
            for exit_, tap in zip(exits, fitting.taps, strict=True)
        }
        for words, groups in plans.items():
            kept = heal(fitting, held, groups, self._held_hits)
            # Below the first adapter nothing is changed.
            self._kept_groups[words] = len(kept)
            adapters |= {
                f'c {self._name(exit_)[2:]}, healed {words}': (exit_, kept)
                for exit_ in exits
                if kept and exit_ >= min(kept)
            }
        for name, (exit_, of) in adapters.items():
            self._row(name, of_judged.healed(of)[exit_ - 1])
            self._pairs.append((name, self._name(exit_)))

    def _asked(self) -> None:
        """Judge questions at all depths beside the end only, of items at predicted exits."""
        at, usual = AtExits(self.judged, self.predicted), self._name(self.judged.exits - 1)
        pairs = {
            'd asked at each exit': (at.matched, at.plain),
            'd asked at each exit, refined': (at.speculative, at.plain_refined),
        }
        for name, (ours, plain) in pairs.items():
            control = name.replace('each exit', 'the end')
            self._add(name, examples=ours)
            self._add(control, examples=plain)
            # A memory at one exit needs neither.
            self._pairs += [(name, control), (name, usual)]

    def _refined(self) -> None:
        """Judge the best of a coarse exit refined to the last head, and vectors in four bits."""
        target = self.judged.exits - 1
        whole, name = self.judged.vectors[target - 1], self._name(target)
        for exit_ in range(1, target):
            coarse = self.judged.vectors[exit_ - 1]
            made = refinements(self.encoder, self.crops, exit_, target)
            for source, of in made.items():
                row = f'e {self._name(exit_)[2:]}, refined from {source}'
                find = partial(_refining, coarse, whole, of.vectors)
                words = self.galleries.words(coarse, of.vectors)
                self._add(row, words, find, bytes=of.bytes, ms=of.ms)
                self._pairs += [(row, self._name(exit_)), (row, name)]
            stored = f'e {self._name(exit_)[2:]}, refined from '
            self._pairs.append((stored + ACTIVATION, stored + THUMBNAIL))
        quarter = f'e {name[2:]}, vectors in int4'
        self._row(quarter, _in_int4(whole), bytes=int4.row_bytes(whole.shape[1]))
        self._pairs.append((quarter, name))

    def _times(self, on_share: OnShare) -> list[dict[str, Any]]:
        """Time every way through the encoder; ratios with the least and greatest of the rounds.

        ``faster`` is how many times as fast as all items to the end in the same batch, ``gain``
        beside the same exits as they come.
        """
        places = np.random.default_rng(0).permutation(len(self.judged.scenes))[: self.scale.timed]
        count, classes = len(places), len(self.encoder.description.classes)

        def predict(stage: int, made: Any) -> object:
            tap = self.encoder.network.writes[0][0]
            return self.predictor.exits(made[tap]) if stage == 0 else None

        def ask_head(stage: int, made: Any) -> object:
            return sureness(made[EXIT.format(stage + 1)], classes)

        chosen = {PREDICTED: (self.predicted, predict), SURE: (self.sure, ask_head)}
        ways = []
        for batch in (1, BATCH):
            for exit_ in range(self.judged.exits, 0, -1):
                exits = np.full(count, exit_, np.int64)
                ways.append(Way(self._name(exit_)[2:], exits, one_group, batch))
            for name, (exits, decide) in chosen.items():
                orders = (one_group, grouped, refilled) if batch > 1 else (one_group,)
                ways += [Way(name, exits[places], one, batch, decide) for one in orders]
        blobs = self.encoder.blobs(self.crops.rows(places))
        seconds = seconds_of(ways, self.encoder, blobs, self.scale.rounds, on_share)
        found = []
        for way, taken in zip(ways, seconds.T, strict=True):
            alike = [(w, s) for w, s in zip(ways, seconds.T, strict=True) if w.batch == way.batch]
            plain = next(s for w, s in alike if w.name == way.name)
            found.append(
                {
                    'way': way.name,
                    'order': way.order.__name__.replace('_', ' '),
                    'batch': way.batch,
                    'per_s': count / float(np.median(taken)),
                    'mj': 1e3 * self.watts * float(np.median(taken)) / count,
                    'faster': _range(alike[0][1] / taken),
                    'gain': _range(plain / taken),
                }
            )
        return found

    def _row(self, name: str, vectors: Vectors, **facts: Any) -> None:
        self._add(name, self.galleries.words(vectors), _same(vectors), **facts)

    def _add(
        self,
        name: str,
        words: Found | None = None,
        examples: FindExamples | None = None,
        **facts: Any,
    ) -> None:
        found = self.galleries.examples(examples) if examples is not None else None
        self._sums[name], self._facts[name] = self._by_scene(words, found), facts

    def _found_at(self, at: AtExits) -> list[dict[str, float]]:
        """Return what is found of items at their exits, asked at the exit of each."""
        words = self.galleries.words(at.stored)
        return self._by_scene(words, self.galleries.examples(at.matched))

    def _by_scene(self, words: Found | None, examples: Found | None) -> list[dict[str, float]]:
        nothing = np.zeros(len(self.galleries.scenes))
        return [
            {
                f'{kind}_{column}': float((nothing if of is None else getattr(of, column))[scene])
                for kind, of in (('words', words), ('examples', examples))
                for column in Found._fields
            }
            for scene in range(len(nothing))
        ]

    @cached_property
    def _held_galleries(self) -> Galleries:
        return Galleries(self.held, self.encoder.space, self.scale.galleries)

    def _held_hits(self, vectors: Vectors) -> float:
        """Return the mean of hit@10 by words and by example, of the crops held out."""
        words = self._held_galleries.words(vectors)
        examples = self._held_galleries.examples(_same(vectors))
        return (words.hit_at_10 + examples.hit_at_10) / 2.0

    def _wanted(self, crops: Embedded) -> Exits:
        return Galleries(crops, self.encoder.space, 1).first_sufficient(crops.vectors)

    def _name(self, exit_: int) -> str:
        return 'a end' if exit_ == self.judged.exits else f'a exit {exit_}'


def run_parts_bench(
    bundle: Path, folder: Path, large: Path | None, scale: Scale, watts: float, report: Report
) -> dict[str, Any]:
    """Bench the parts of a flight memory on a folder of crops of simulated scenes.

    :param large: bundle whose largest camera level is in stages, for loading them one by one
    :param watts: of a busy core, for joules: a model
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
        scenes = len(np.unique(part.scenes))
        if scenes < _FEWEST_SCENES:
            raise EvaluationError(
                f'{scenes} scenes to {words} are too few; take crops of more scenes (`mmedge lab '
                'train recogniser --crops`)'
            )
    if scale.learned:
        parts[0] = parts[0].rows(np.arange(min(scale.learned, len(parts[0].crops))))
    with TemporaryDirectory() as copies:
        encoder = CropEncoder(bundle, Path(copies))
        embedded = []
        for place, part in enumerate(parts):
            on_share = partial(_on_share, part_of(report, 0.1 * place, 0.1 * (place + 1)))
            embedded.append(encoder.embed(part, on_share))
        bench = PartsBench(encoder, parts[2], embedded[2], embedded[0], embedded[1], scale, watts)
        return bench.report(stages, part_of(report, 0.3, 1.0))


def _on_share(report: Report, share: float) -> None:
    report(share, 'embedding crops')


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


def _by_object(crops: CropSet) -> CropSet:
    """Return crops with those of one object one after another."""
    return crops.rows(np.argsort(object_numbers(crops), kind='stable'))


def _same(vectors: Vectors) -> FindExamples:
    """Return what finds views by examples that are embedded as they are."""
    return lambda gallery: best_first(gallery.rated(vectors, vectors))


def _refining(coarse: Vectors, whole: Vectors, again: Vectors, gallery: Gallery) -> Places:
    """Find by what is coarse, and rate the best again by the whole of the example."""
    order = best_first(gallery.rated(coarse, coarse))
    return refining(order, gallery.rated(whole, again))


def _in_int4(vectors: Vectors) -> Vectors:
    return int4.unpacked(int4.packed(vectors), vectors.shape[1])


def _range(ratios: NDArray[np.float64]) -> dict[str, float]:
    return {
        'value': float(np.median(ratios)),
        'low': float(ratios.min()),
        'high': float(ratios.max()),
    }
