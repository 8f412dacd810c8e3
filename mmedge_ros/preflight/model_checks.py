"""The model that would fly, and the device profile of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmedge_ros import MmedgeError
from mmedge_ros.adaptation.bundle_configurations import bundle_space
from mmedge_ros.adaptation.unit_time_profile import unit_times_from_profile
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.device_profile import DeviceProfile, read_profile
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.model_bundle import domain_warning, is_bundle, load_bundle
from mmedge_ros.encoding.bundle.weights import require_weights
from mmedge_ros.preflight.finding import Finding, note, ok, wrong

_DAY = 86_400.0
_OLD = 180.0
# Rates do not matter here, levels do.
_RATES = {CAMERA: (30.0,), RADAR: (20.0,)}
_MEASURE = 'measure it: mmedge profile --out {path}'


def check_model(detector: str) -> tuple[list[Finding], Path | None]:
    """Judge the model of a name ('' for what is taken without one); returns its path as well."""
    try:
        path = default_detector(detector)
        if not is_bundle(path):
            return [ok('model', str(require_weights(path)))], path
        bundle = load_bundle(path)
        files = [file.verified() for file in bundle.files()]
        warning = domain_warning(path, source_is_simulated=False)
    except EncodingError as error:
        return [wrong('model', str(error), 'see `mmedge model list`')], None
    levels = ', '.join(bundle.levels)
    findings = [ok('model', f'{bundle.name} in {path}: {len(files)} files as described, {levels}')]
    if warning:
        words, _, remedy = warning.partition('. ')
        findings.append(note('pictures', words, remedy))
    return findings, path


def check_profile(
    profile: Path, model: Path | None, machine: Mapping[str, Any], now: float
) -> list[Finding]:
    """Judge whether a device profile suits machine and model.

    :param machine: that of `machine_description`
    :param now: s since 1970
    """
    remedy = _MEASURE.format(path=profile)
    if not profile.exists():
        words = f'no {profile}: with --optimise times are learned in flight'
        return [note('profile', words, remedy)]
    try:
        measured = read_profile(profile)
        if model is not None:
            unit_times_from_profile(measured, bundle_space(model, (CAMERA, RADAR), _RATES))
        age = (now - profile.stat().st_mtime) / _DAY
    except (MmedgeError, OSError) as error:
        return [note('profile', f'{profile}: {error}', remedy)]
    other = _other_machine(measured, machine)
    if other:
        return [note('profile', f'{profile} was measured on {other}', remedy)]
    words = f'{profile}, {age:.0f} days old: {measured.description[:120]}'
    if age > _OLD or _is_newer(model, profile):
        return [note('profile', f'{words}; older than half a year or the model', remedy)]
    return [ok('profile', words)]


def _other_machine(profile: DeviceProfile, machine: Mapping[str, Any]) -> str:
    """Describe the machine of a profile if it is another one."""
    measured = profile.details.get('machine')
    if not isinstance(measured, Mapping):
        return 'a machine that it does not name'
    same = ('model', 'processor', 'cores')
    if all(measured.get(key) == machine.get(key) for key in same):
        return ''
    return ', '.join(str(measured.get(key, ''))[:60] for key in same if measured.get(key))


def _is_newer(model: Path | None, profile: Path) -> bool:
    if model is None:
        return False
    manifest = model / 'manifest.yaml' if model.is_dir() else model
    return manifest.stat().st_mtime > profile.stat().st_mtime
