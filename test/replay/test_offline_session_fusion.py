"""An offline replay whose bundle brings fusion networks, real ones in ONNX though little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bag_fixtures import recording, write_bag
from tiny_fusion_bundle import write_fusion_bundle
from tiny_stages import BOX, write_grid_bundle

from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding import EncodingError
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline

# Pictures of 64 x 48 px on an input of 640 x 480.
ENCODERS_OWN = [edge / 10 for edge in BOX]


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bag(tmp_path_factory.mktemp('bags') / 'both', messages=recording(1.5))


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fusion_bundle(tmp_path_factory.mktemp('models'))


@pytest.fixture
def replayed(profile: Path) -> Callable[..., RunRecord]:
    def replay(bag: Path, bundle: Path, strategy: str = 'auto') -> RunRecord:
        pipeline = PipelineParameters(strategy=strategy)
        return replay_offline(
            OfflineOptions(str(bag), str(bundle), '', str(profile), pipeline=pipeline)
        )

    return replay


def shows_the_encoders_box(record: RunRecord) -> bool:
    boxes = [t.box for d in record.decisions for t in d.tracks if t.box is not None]
    assert boxes
    return any(box == pytest.approx(ENCODERS_OWN, abs=1.0) for box in boxes)


def test_the_bundles_networks_fuse_and_the_record_says_so(
    replayed, bag: Path, bundle: Path
) -> None:
    record = replayed(bag, bundle)
    assert record.software['strategy'] == 'feature'
    assert not shows_the_encoders_box(record)
    assert not any('feature' in problem for problem in record.problems)
    assert all(not unit.grid.size for unit in record.features)
    embeddings = {unit.modality: unit.embedding.size for unit in record.features}
    assert embeddings == {'camera': 32, 'radar': 32}


def test_fusion_networks_that_do_not_fit_are_an_error_before_anything_is_replayed(
    replayed, bag: Path, tmp_path: Path
) -> None:
    with pytest.raises(EncodingError, match=r'radar\.onnx'):
        replayed(bag, write_grid_bundle(tmp_path))
