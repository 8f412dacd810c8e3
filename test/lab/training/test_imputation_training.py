"""What the rival that imputes learns from."""

from __future__ import annotations

import numpy as np
from hand_made_encoded_flight import encoded_flight
from hand_made_units import MS

from mmedge_lab.policies.imputation import PERSON_FIELDS
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
