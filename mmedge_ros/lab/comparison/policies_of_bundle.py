"""The real policies, as a comparison runs them and speaks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mmedge_ros.lab.comparison.plan import ComparisonCase, PolicyFacts
from mmedge_ros.lab.evaluation import EvaluationError
from mmedge_ros.lab.evaluation.bundle_under_test import BundleUnderTest
from mmedge_ros.lab.evaluation.cached_networks import CachedNetworks
from mmedge_ros.lab.evaluation.encoded_flight import EncodedFlight
from mmedge_ros.lab.policies.policy_run import PolicyRun, run_policy
from mmedge_ros.lab.policies.registry import POLICIES, PolicyKind
from mmedge_ros.lab.policies.steering import Plugins

_PERCENT, _MS_PER_S = 100.0, 1e3


@dataclass(frozen=True)
class PolicyRuns:
    """Runs policies with the service times of the bundle under test."""

    plugins: Plugins = field(default_factory=Plugins)

    def __call__(
        self,
        case: ComparisonCase,
        flight: EncodedFlight,
        bundle: BundleUnderTest,
        networks: CachedNetworks | None,
    ) -> PolicyRun:
        return run_policy(
            case.policy,
            flight,
            bundle,
            protocol=case.protocol,
            cpu_share=case.share / _PERCENT,
            latency_limit=case.limit_ms / _MS_PER_S,
            plugins=self.plugins,
            networks=networks,
        )


def policies_for(
    plugins: Plugins, has_fusion: bool, asked: str
) -> tuple[list[PolicyFacts], list[str]]:
    """Return the policies that can be run, and why each of the others cannot.

    :param has_fusion: whether the bundle has a fusion network
    :param asked: names on the command line, by commas; '' for all
    :raises EvaluationError: if a policy that is asked for cannot be run
    """
    found, without = [], []
    for kind in POLICIES.values():
        lack = _lack(kind, plugins, has_fusion)
        if lack:
            without.append(f'{kind.name} was not run: {lack}')
        else:
            found.append(PolicyFacts(kind.name, kind.short, kind.words))
    _require(asked, without)
    return found, without


def _lack(kind: PolicyKind, plugins: Plugins, has_fusion: bool) -> str:
    if kind.needs and getattr(plugins, kind.needs) is None:
        return 'it needs a trained plug-in, and there is none (mmedge train rivals makes it)'
    if not kind.learned and not has_fusion:
        return 'the bundle has no networks over the window, so that it would be ours'
    return ''


def _require(asked: str, without: Sequence[str]) -> None:
    names = {part.strip() for part in asked.split(',')}
    for sentence in without:
        if sentence.split(' ', 1)[0] in names:
            raise EvaluationError(f'--policies: {sentence}; leave it out')
