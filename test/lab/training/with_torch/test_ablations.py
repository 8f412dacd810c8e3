"""Trainings with and without parts of fusion, as small as they get."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hand_made_features import hand_made_flight, write_features

from mmedge_lab.training import TrainingError
from mmedge_lab.training.ablation_table import FULL, VARIANTS
from mmedge_lab.training.ablations import AblationRequest, run_ablations
from mmedge_lab.training.fusion_settings import FusionSettings

SLOW = (10.0, 10.0)
TINY = FusionSettings(epochs=1, batch=4, threads=1, thinning=1, judged_windows=3)


def silent(share: float, words: str) -> None: ...


@pytest.fixture(scope='module')
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('features')
    for name, seeds in (('lab', 'train', (0, 1)), ('validation', (7, 8))):
        for seed in seeds:
            write_features(
                folder / f'cache/{name}/{seed}', hand_made_flight(seed, 0.9, rates=SLOW)
            )
    return folder


@pytest.fixture(scope='module')
def done(
    features: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[AblationRequest, dict[str, Any], list[float]]:
    out = tmp_path_factory.mktemp('ablations') / 'out'
    request = AblationRequest(features, out, TINY, seeds=1)
    progress: list[float] = []
    return request, run_ablations(request, lambda share, words: progress.append(share)), progress


def test_each_variant_is_trained_and_judged(
    done: tuple[AblationRequest, dict[str, Any], list[float]],
) -> None:
    request, table, progress = done
    assert progress == sorted(progress)
    entry = table['configurations'][FULL]['variants']
    assert set(entry) == {variant.name for variant in VARIANTS}
    assert all(0.0 <= row['worth']['mean'] <= 1.0 for row in entry.values())
    assert table['flights'] == ['flight_7', 'flight_8']
    assert table['plan']['learned_from'] == ['flight_0', 'flight_1']
    losses = {name: losses[0] for name, losses in table['losses'].items()}
    assert len({tuple(course) for course in losses.values()}) == len(VARIANTS)
    # Of each run its figures are left, and nothing else.
    assert not list(request.out.rglob('*.pt'))


def test_what_has_ended_is_not_trained_again(
    done: tuple[AblationRequest, dict[str, Any], list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    request, table, _ = done

    def refuse(*_: object) -> None:
        raise AssertionError('trained again')

    monkeypatch.setattr('mmedge_lab.training.ablations._run', refuse)
    assert run_ablations(replace(request, resume=True), silent) == table


def test_without_resume_runs_that_are_there_are_not_touched(
    done: tuple[AblationRequest, dict[str, Any], list[float]],
) -> None:
    with pytest.raises(TrainingError, match='--resume'):
        run_ablations(done[0], silent)


def test_runs_with_other_settings_do_not_mix(
    done: tuple[AblationRequest, dict[str, Any], list[float]],
) -> None:
    other = replace(done[0], settings=replace(TINY, epochs=2), resume=True)
    with pytest.raises(TrainingError, match='other settings or flights'):
        run_ablations(other, silent)
    fewer = replace(done[0], flights=1, resume=True)
    with pytest.raises(TrainingError, match='other settings or flights'):
        run_ablations(fewer, silent)


class StoppedError(Exception):
    """Ends everything in the middle of a training."""


def test_runs_that_were_cut_short_end_as_if_nothing_had_happened(
    done: tuple[AblationRequest, dict[str, Any], list[float]], tmp_path: Path
) -> None:
    request, table, _ = done

    def stop(share: float, words: str) -> None:
        if 'no_shift' in words and 'judging' in words:
            raise StoppedError

    cut = replace(request, out=tmp_path / 'out')
    with pytest.raises(StoppedError):
        run_ablations(cut, stop)
    assert [path.name for path in cut.out.glob('runs/*.json')] == ['full_0.json']
    assert (cut.out / 'runs/no_shift_0.pt').is_file()
    result = run_ablations(replace(cut, resume=True), silent)
    for key in ('configurations', 'losses'):
        assert json.dumps(result[key]) == json.dumps(table[key])
