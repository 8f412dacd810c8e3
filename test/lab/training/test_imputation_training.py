"""What the rival that imputes learns from, and where it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_rivals import going_on, plugins_for
from hand_made_units import MS
from tiny_bundle import write_tiny_bundle
from truth_fixtures import write_short_flights
from typer.testing import CliRunner

from mmedge_lab.commands.train import train_app
from mmedge_lab.policies.imputation import PERSON_FIELDS
from mmedge_lab.policies.trained_rivals import FOLDER, bundle_rivals, write_rivals
from mmedge_lab.training import imputation_training
from mmedge_lab.training.imputation_training import picture_samples


def test_pictures_taken_away_are_samples_of_imputation() -> None:
    flight = encoded_flight(lambda when: 1 + (when < 1200.0), 2.0)
    result = picture_samples(flight, '', 500 * MS, 0)
    assert result.before.shape == (len(result.found), len(PERSON_FIELDS))
    # Everybody stands still; one is gone from some picture on.
    assert np.allclose(result.moved[result.found], 0.0)
    assert 0.0 < (~result.found).mean() < 0.1
    same = picture_samples(flight, '', 500 * MS, 0)
    assert np.array_equal(result.before, same.before)


def test_the_trained_rival_comes_with_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What can be learnt of such short flights says nothing; the learning has tests of its own.
    monkeypatch.setattr(
        imputation_training, 'train_imputer', lambda *_: (going_on(), {'samples': 1})
    )
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    write_rivals(bundle / FOLDER, bundle, replace(plugins_for(bundle), imputation=None))
    write_short_flights(tmp_path / 'set', 1, 0.6)
    given = ['fit', 'imputer', bundle, '--train', tmp_path / 'set', '--jobs', '1']
    done = CliRunner().invoke(train_app, [str(part) for part in given])
    assert done.exit_code == 0, done.stderr
    assert bundle_rivals(bundle).plugins.imputation is not None
    assert bundle_rivals(bundle).plugins.modality_gating is not None  # as it was
    assert not list(tmp_path.glob('.tiny*'))
