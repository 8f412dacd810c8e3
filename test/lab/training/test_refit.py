"""What a refit finds there, what it calls stale, and what it does again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny_bundle import write_tiny_bundle
from typer.testing import CliRunner

from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_lab.policies.trained_rivals import encoders_digest
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.fitted_parts import Fit, fitted_parts
from mmedge_lab.training.noise_fit import NoiseFit, write_noise_scale
from mmedge_lab.training.refit import (
    CAMERA_BUNDLE,
    FUSED_BUNDLE,
    MISSING,
    RefitRequest,
    Step,
    do_step,
    plan,
    refit_steps,
)
from mmedge_ros.commands.main import app

FIT = NoiseFit(2.5, 10, Estimate(5.0, 4.0, 6.0), Estimate(4.0, 3.0, 5.0))


def silent(share: float, words: str) -> None: ...


@pytest.fixture
def request_of(tmp_path: Path) -> RefitRequest:
    """New detectors, and nothing made from them."""
    for width in ('narrow', 'wide'):
        (tmp_path / f'{width}.pt').write_text(f'{width} network')
    paths = (tmp_path / name for name in ('narrow.pt', 'wide.pt', 'scenes', 'sets', 'out'))
    return RefitRequest(*paths)


def change(bundle: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    content = yaml.safe_load((bundle / 'manifest.yaml').read_text())
    edit(content)
    (bundle / 'manifest.yaml').write_text(yaml.safe_dump(content))


def write_bundle(request: RefitRequest, name: str) -> Path:
    """Write a bundle that says it was made from the detectors, without a part."""
    bundle = write_tiny_bundle(request.out / name)
    detectors = {
        width: {'sha256': hashlib.sha256(path.read_bytes()).hexdigest()}
        for width, path in (('narrow', request.narrow), ('wide', request.wide))
    }
    training: dict[str, Any] = detectors
    if name == FUSED_BUNDLE:
        training = {'detectors': detectors, 'settings': {'epochs': 8}, 'data': {'flights': 90}}
    change(bundle, lambda content: content.update(training=training))
    return bundle


def write_parts(bundle: Path) -> None:
    """Write parts that say that they were fitted to the bundle's encoders."""
    digest = encoders_digest(bundle)
    write_noise_scale(bundle, FIT)
    (bundle / 'rivals').mkdir()
    (bundle / 'rivals/rivals.json').write_text(json.dumps({'encoders': digest}))
    parts = {'accuracy': {'encoders': digest}, 'predictor': {'encoders': digest}}
    change(bundle, lambda content: content.update(parts))


def reasons(request: RefitRequest, *only: str) -> dict[str, str]:
    return {step.title: reason for step, reason in plan(refit_steps(request, only))}


def test_with_nothing_there_all_of_it_is_to_be_made_after_the_sets(
    request_of: RefitRequest,
) -> None:
    steps = refit_steps(request_of)
    assert [(step.name, step.target.name) for step in steps] == [
        *(('sets', name) for name in ('train', 'validation', 'calibration', 'test')),
        ('levels', CAMERA_BUNDLE),
        ('fusion', FUSED_BUNDLE),
        ('noise', CAMERA_BUNDLE),
        ('noise', FUSED_BUNDLE),
        ('accuracy', CAMERA_BUNDLE),
        ('accuracy', FUSED_BUNDLE),
        ('predictor', CAMERA_BUNDLE),
        ('rivals', CAMERA_BUNDLE),
        ('rivals', FUSED_BUNDLE),
    ]
    assert {reason for _, reason in plan(steps[4:])} == {MISSING}
    assert plan(steps)[0][1] == '0 of 90 flights are there'


def test_what_is_whole_and_fits_is_not_made_again(request_of: RefitRequest) -> None:
    for name in (CAMERA_BUNDLE, FUSED_BUNDLE):
        write_parts(write_bundle(request_of, name))
    assert set(reasons(request_of).values()) == {''}


def test_only_the_sets_of_the_steps_to_be_done_are_simulated(request_of: RefitRequest) -> None:
    write_bundle(request_of, CAMERA_BUNDLE)
    write_parts(write_bundle(request_of, FUSED_BUNDLE))
    assert set(reasons(request_of, 'noise')) == {
        str(request_of.sets / 'validation'),
        f'noise of {CAMERA_BUNDLE}',
        f'noise of {FUSED_BUNDLE}',
    }


def test_other_detectors_make_bundles_stale_with_all_their_parts(
    request_of: RefitRequest,
) -> None:
    for name in (CAMERA_BUNDLE, FUSED_BUNDLE):
        write_parts(write_bundle(request_of, name))
    request_of.narrow.write_text('another network')
    planned = reasons(request_of)
    assert planned[f'levels of {CAMERA_BUNDLE}'] == 'stale: made from other detectors'
    assert planned[f'fusion of {FUSED_BUNDLE}'] == 'stale: made from other detectors'
    assert planned[f'rivals of {FUSED_BUNDLE}'] == 'stale: its bundle is made anew'
    assert '' not in planned.values()


def test_a_fusion_of_other_epochs_or_fewer_flights_is_stale(request_of: RefitRequest) -> None:
    bundle = write_bundle(request_of, FUSED_BUNDLE)
    few = replace(request_of, flights=30)
    assert reasons(few, 'fusion') == {f'fusion of {FUSED_BUNDLE}': ''}
    change(bundle, lambda content: content['training']['data'].update(flights=30))
    assert reasons(few, 'fusion') == {f'fusion of {FUSED_BUNDLE}': ''}
    assert '30 flights' in reasons(request_of, 'fusion')[f'fusion of {FUSED_BUNDLE}']
    change(bundle, lambda content: content['training']['data'].update(flights=90))
    change(bundle, lambda content: content['training']['settings'].update(epochs=2))
    planned = reasons(request_of, 'fusion')
    assert planned[f'fusion of {FUSED_BUNDLE}'] == 'stale: learned in 2 epochs from 90 flights'


def test_an_interrupted_refit_goes_on_where_it_was() -> None:
    done: list[str] = []
    broken = {'second'}

    def step(name: str) -> Step:
        def work(report: Report) -> None:
            if name in broken:
                raise TrainingError('no room left')
            done.append(name)

        return Step(name, Path(name), lambda: '' if name in done else MISSING, work)

    steps = [step(name) for name in ('first', 'second', 'third')]
    with pytest.raises(TrainingError, match='no room left'):
        _ = [do_step(each, silent) for each in steps]
    broken.clear()
    assert [do_step(each, silent) for each in steps] == [False, True, True]
    assert done == ['first', 'second', 'third']


def test_a_part_is_stale_when_the_encoders_are_others(request_of: RefitRequest) -> None:
    bundle = write_bundle(request_of, CAMERA_BUNDLE)
    write_parts(bundle)
    assert set(fitted_parts(bundle).values()) == {Fit.FITTED}
    change(bundle, lambda content: content['camera']['levels']['small'].update(sha256='0' * 64))
    change(bundle, lambda content: content['accuracy'].pop('encoders'))
    assert fitted_parts(bundle) == {
        'accuracy': Fit.UNKNOWN,
        'predictor': Fit.STALE,
        'noise': Fit.STALE,
        'rivals': Fit.STALE,
    }


def refit(request: RefitRequest, *arguments: str) -> Any:
    request.scenes.mkdir(exist_ok=True)
    given = {'--narrow': request.narrow, '--wide': request.wide, '--scenes': request.scenes}
    given |= {'--sets': request.sets, '--out': request.out}
    paths = [str(each) for pair in given.items() for each in pair]
    return CliRunner().invoke(app, ['lab', 'train', 'refit', *paths, *arguments])


def test_the_plan_alone_makes_nothing(request_of: RefitRequest) -> None:
    done = refit(request_of, '--plan')
    assert done.exit_code == 0, done.stderr
    assert f'fusion of {FUSED_BUNDLE}: to be made (missing)' in done.stderr
    assert not request_of.out.exists()


def test_a_folder_without_a_detector_and_an_unknown_step_are_refused(
    request_of: RefitRequest,
) -> None:
    done = refit(request_of, '--steps', 'rival')
    assert done.exit_code == 1
    assert "the nearest is 'rivals'" in done.stderr
    request_of.narrow.unlink()
    request_of.narrow.mkdir()
    done = refit(request_of)
    assert done.exit_code == 1
    assert 'narrow.pt holds no checkpoint.pt' in done.stderr
    assert not request_of.sets.exists()
