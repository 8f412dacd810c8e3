"""The bundle that is judged: opened, checked, and known by its content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mmedge_lab
import mmedge_ros
from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_cases import Strategy
from mmedge_lab.judging.cached_networks import CachedNetworks
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.encoder_registry import EncoderSettings, encoder_kind
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, FEATURE, PipelineParameters
from mmedge_ros.windows.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.windows.skip_control import SkipParameters

# The figures of a configuration are those of full windows.
_NO_SKIPPING = SkipParameters(delta=0.0)

# A median desk machine, every level alike: what is judged is what units are worth, and the
# latencies of one machine must not decide about it.
NOMINAL = DeviceProfile(
    'nominal: 10 ms per picture, 0.3 ms per scan, 1.4 ms transport, 3 ms per decision',
    {
        'camera.encode': (0.010,) * 6,
        'radar.encode': (0.0003,) * 6,
        'features.transport': (0.0014,) * 6,
        'receipt.transport': (0.0002,) * 6,
        'fusion': (0.003,) * 6,
    },
)


@dataclass(frozen=True)
class BundleUnderTest:
    """A bundle, and the service times it is replayed with.

    ``digest`` changes with the bundle's content, the profile and the software that decides.
    """

    folder: Path
    profile: DeviceProfile
    digest: str

    @property
    def has_fusion(self) -> bool:
        """Whether it has a fusion network."""
        return load_bundle(self.folder).has_fusion

    def encoders(self) -> dict[str, UnitEncoder]:
        """Open the encoders; networks are opened when first used.

        :raises EncodingError: if the manifest cannot be read
        """
        settings = EncoderSettings(self.folder)
        return {m: encoder_kind(m).make(settings) for m in (CAMERA, RADAR)}

    def networks(self) -> CachedNetworks | None:
        """Open the fusion networks; None where there are none.

        :raises EncodingError: if a file is not the manifest's
        :raises FusionError: if they cannot be opened or do not fit together
        """
        bundle = load_bundle(self.folder)
        if not bundle.has_fusion:
            return None
        return CachedNetworks(FusionNetworkRuntime.from_bundle(bundle))

    def pipeline(
        self, strategy: Strategy, networks: CachedNetworks | None, updates: bool = False
    ) -> PerceptionPipeline:
        """Return a new pipeline for a strategy.

        :param networks: what `networks` opened; shared by all pipelines of a flight
        :param updates: publish between decisions as well, as in flight
        :raises EncodingError: if the manifest cannot be read
        """
        learned = strategy.learned and networks is not None
        # Of decisions alone: so configurations were always judged, and so are most rivals.
        parameters = PipelineParameters(
            strategy=FEATURE if learned else DECISION, updates=updates, skipping=_NO_SKIPPING
        )
        return open_pipeline(self.folder, parameters, networks)


def open_bundle(folder: Path, profile: DeviceProfile) -> BundleUnderTest:
    """Check a bundle: every network of every level is verified, opened and run once.

    :raises EncodingError: if anything in it cannot be used
    :raises FusionError: if its fusion networks do not fit together
    :raises EvaluationError: if it is no bundle folder
    """
    if not folder.is_dir():
        raise EvaluationError(
            f'{folder} is no bundle folder; name a folder with a {MANIFEST} in it'
        )
    load_bundle(folder)
    digest = hashlib.sha256()
    # The manifest holds the hashes of all other files, which are verified as they are opened.
    for text in (sha256_of(folder / MANIFEST), _profile_text(profile), software_digest()):
        digest.update(text.encode())
    bundle = BundleUnderTest(folder, profile, digest.hexdigest())
    for encoder in bundle.encoders().values():
        encoder.warm_up()
    # As a flight would open it, which also runs it once.
    open_pipeline(folder, PipelineParameters(skipping=_NO_SKIPPING))
    return bundle


def flight_digest(flight: Path) -> str:
    """Return the digest of a flight's content.

    :raises EncodingError: if a file of it cannot be read
    """
    digest = hashlib.sha256()
    try:
        files = sorted(path for path in flight.iterdir() if path.is_file())
    except OSError as err:
        raise EvaluationError(f'{flight} cannot be read: {err.strerror or err}') from err
    for path in files:
        digest.update(f'{path.name} {sha256_of(path)}\n'.encode())
    return digest.hexdigest()


def _profile_text(profile: DeviceProfile) -> str:
    return repr(sorted((name, tuple(times)) for name, times in profile.stages.items()))


@cache
def software_digest() -> str:
    """Return the digest of all code of both packages: whatever changes, figures are made anew."""
    digest = hashlib.sha256()
    for package in (mmedge_ros, mmedge_lab):  # which may be installed anywhere
        folder = Path(str(package.__file__)).parent
        for file in sorted(folder.rglob('*.py')):
            digest.update(f'{package.__name__} {file.relative_to(folder)} '.encode())
            digest.update(sha256_of(file).encode())
    return digest.hexdigest()
