"""Results of trainings are found by their content, and a bundle keeps them."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import hand_made_results as made
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tiny_bundle import write_tiny_bundle

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.comparison.measured_results import (
    KINDS,
    AblationResult,
    GateResult,
    PredictorResult,
    kind_of,
)
from mmedge_lab.rivals.comparison.plain_fields import Fields
from mmedge_lab.rivals.comparison.result_files import (
    bundle_results,
    enter_results,
    read_results,
)
from mmedge_ros.encoding.bundle.model_bundle import load_bundle

REPORTS = {'gate': made.gate, 'ablations': made.ablations, 'predictor': made.predictor}
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def test_the_kind_of_a_report_follows_from_its_content(tmp_path: Path) -> None:
    folders = [made.written(tmp_path / str(n), make()) for n, make in enumerate(REPORTS.values())]
    result = read_results([folders[2], folders[0] / 'report.json', folders[1]])
    gate, ablations, predictor = (result[name] for name in REPORTS)
    assert isinstance(gate, GateResult)
    assert gate.loss.value == pytest.approx(0.00425)
    assert gate.early == 120
    assert gate.command == (
        'mmedge lab train gate people '
        '--train train --calibration calibration --test test --out BUNDLE'
    )
    assert isinstance(ablations, AblationResult)
    assert ablations.last_unit.value == pytest.approx(ablations.full * 0.2, abs=1e-3)
    assert ablations.last_unit.low > 0.0
    assert isinstance(predictor, PredictorResult)
    assert predictor.regret == (-0.005, -0.008, -0.002)
    assert predictor.is_used


def test_a_bundle_keeps_results_and_everything_else_it_holds(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    manifest = bundle / 'manifest.yaml'
    assert bundle_results(bundle) == {}
    before = manifest.read_text()
    first = read_results([made.written(tmp_path / 'gate', made.gate())])
    second = read_results([made.written(tmp_path / 'again', made.gate(0.02))])
    other = read_results([made.written(tmp_path / 'ablations', made.ablations())])
    enter_results(bundle, first)
    enter_results(bundle, other)
    enter_results(bundle, second)
    result = bundle_results(bundle)
    assert result == {**second, **other}
    assert manifest.read_text().startswith(before)
    assert set(yaml.safe_load(manifest.read_text())) == {*yaml.safe_load(before), 'measured'}
    load_bundle(bundle)


def test_a_predictor_in_the_bundle_brings_its_own_figures(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    manifest = bundle / 'manifest.yaml'
    section = yaml.safe_dump({'predictor': made.predictor(used=False)})
    manifest.write_text(manifest.read_text() + section)
    result = bundle_results(bundle)['predictor']
    assert isinstance(result, PredictorResult)
    assert result.windows == 60.0
    assert not result.is_used
    better = made.written(tmp_path / 'report', made.predictor())
    enter_results(bundle, read_results([better]))
    entered = bundle_results(bundle)['predictor']
    assert isinstance(entered, PredictorResult)
    assert entered.is_used


@pytest.mark.parametrize(
    ('content', 'sentence'),
    [
        (b'{', 'is no JSON'),
        (b'[1]', 'is no measured result'),
        (b'{"flights": []}', 'is no measured result'),
    ],
)
def test_other_files_are_one_sentence_that_says_which_are_meant(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / 'report.json'
    path.write_bytes(content)
    with pytest.raises(EvaluationError, match=sentence) as err:
        read_results([path])
    assert str(path) in str(err.value)
    assert 'mmedge lab train gate' in str(err.value)


def test_an_empty_folder_and_two_results_of_a_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r'report\.json: No such file'):
        read_results([tmp_path])
    folders = [made.written(tmp_path / name, made.gate()) for name in ('one', 'two')]
    with pytest.raises(EvaluationError, match='a second result of gate'):
        read_results(folders)


@pytest.mark.parametrize('kind', REPORTS)
@given(data=st.data())
def test_whatever_a_report_holds_it_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    content: Any = copy.deepcopy(REPORTS[kind]())
    place: Any = content
    for _ in range(data.draw(st.integers(0, 4))):
        inner = place.values() if isinstance(place, dict) else place
        deeper = [part for part in inner if isinstance(part, dict | list) and part]
        if not deeper:
            break
        place = data.draw(st.sampled_from(deeper))
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    place[data.draw(st.sampled_from(keys))] = data.draw(JSON)
    content = json.loads(json.dumps(content))
    if kind_of(content) != kind:
        return
    with suppress(EvaluationError):
        KINDS[kind].read(Fields('here', content))


def test_a_gate_without_its_figures_is_refused() -> None:
    for name in ('ours', 'against'):
        with pytest.raises(EvaluationError, match=rf'^here: {name} is \[\]'):
            KINDS['gate'].read(Fields('here', {**made.gate(), name: []}))


@pytest.mark.parametrize('kind', REPORTS)
@given(section=JSON)
def test_whatever_a_manifest_holds_it_is_read_or_refused(kind: str, section: Any) -> None:
    with pytest.raises(EvaluationError, match='manifest'):
        Fields('manifest', {kind: section}).part(kind).record(KINDS[kind].record)
