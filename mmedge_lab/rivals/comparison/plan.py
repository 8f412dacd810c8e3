"""What to compare: policies, protocols, shares of the processor and latency limits."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mmedge_lab.judging import EvaluationError
from mmedge_lab.policies.registry import POLICIES
from mmedge_lab.policies.schedule import PROTOCOLS, SAMPLE, STREAM
from mmedge_lab.policies.steering import Plugins

OURS, BLOCKING = 'ours', 'blocking'
_LIMITS_MS, _SHARES = (5.0, 5000.0), (5.0, 100.0)
_NO_LIMIT = 'latency limit; write milliseconds from {:g} to {:g}, such as 50ms'.format(*_LIMITS_MS)
_NO_SHARE = 'share of the processor; write percent from {:g} to {:g}'.format(*_SHARES)


class PolicyFacts(NamedTuple):
    """A policy as reports show it; ``words`` is a sentence on what it does."""

    name: str
    short: str
    words: str

    @property
    def is_ablation(self) -> bool:
        """Whether it is ours without some part."""
        return self.name.startswith(f'{OURS}_')


class ComparisonCase(NamedTuple):
    """A policy, how it is run, and under which limits.

    ``share`` of the processor in percent, ``limit_ms`` the latency limit.
    """

    policy: str
    protocol: str
    share: float
    limit_ms: float

    @property
    def key(self) -> str:
        """A name for files and kept figures."""
        return f'{self.policy}-{self.protocol}-{self.share:g}-{self.limit_ms:g}ms'


@dataclass(frozen=True)
class ComparisonPlan:
    """Everything to judge; the first share and the first limit are the base of both axes."""

    policies: tuple[PolicyFacts, ...]
    protocols: tuple[str, ...]
    shares: tuple[float, ...]
    limits_ms: tuple[float, ...]
    cases: tuple[ComparisonCase, ...]

    @property
    def protocol(self) -> str:
        """The protocol of the headline: stream where it is run."""
        return STREAM if STREAM in self.protocols else self.protocols[0]

    def base(self, policy: str, protocol: str = '') -> ComparisonCase:
        """Return a policy at the first share and limit."""
        return ComparisonCase(policy, protocol or self.protocol, self.shares[0], self.limits_ms[0])

    def has(self, policy: str, protocol: str = '') -> bool:
        """Return whether a policy is judged, and in that protocol."""
        return self.base(policy, protocol) in self.cases

    @property
    def rivals(self) -> tuple[PolicyFacts, ...]:
        """The policies that are not ours, nor parts of it."""
        return tuple(p for p in self.policies if p.name != OURS and not p.is_ablation)

    @property
    def ablations(self) -> tuple[PolicyFacts, ...]:
        """Ours without each part."""
        return tuple(p for p in self.policies if p.is_ablation)

    def facts(self, policy: str) -> PolicyFacts:
        """Return the facts of a policy."""
        return next(facts for facts in self.policies if facts.name == policy)


def plan_comparison(
    known: Sequence[PolicyFacts],
    policies: str = '',
    protocols: str = '',
    limits: str = '50ms',
    shares: str = '100',
) -> ComparisonPlan:
    """Plan what to judge, from options of the command line.

    Every policy runs at the first share and the first limit in each protocol; from there shares
    and limits vary one at a time, shares in the stream protocol where that is run: alone and
    unloaded a window meets no contention.

    :param policies: names, by commas; '' for all
    :raises EvaluationError: for an unknown name or a number out of range
    """
    names = _names(policies, [facts.name for facts in known], 'policy')
    chosen = tuple(facts for facts in known if not names or facts.name in names)
    used = _names(protocols, PROTOCOLS, 'protocol') or PROTOCOLS
    ordered = tuple(protocol for protocol in PROTOCOLS if protocol in used)
    limits_ms = _numbers(limits, '--limits', 'ms', *_LIMITS_MS, _NO_LIMIT)
    percents = _numbers(shares, '--shares', '%', *_SHARES, _NO_SHARE)
    return ComparisonPlan(
        chosen, ordered, percents, limits_ms, _cases(chosen, ordered, percents, limits_ms)
    )


def _cases(
    policies: Sequence[PolicyFacts],
    protocols: Sequence[str],
    shares: Sequence[float],
    limits_ms: Sequence[float],
) -> tuple[ComparisonCase, ...]:
    base = [
        ComparisonCase(f.name, p, shares[0], limits_ms[0]) for f in policies for p in protocols
    ]
    headline = STREAM if STREAM in protocols else protocols[0]
    varied = [case for case in base if case.protocol == headline]
    more = [case._replace(share=share) for share in shares[1:] for case in varied]
    more += [
        case._replace(limit_ms=limit)
        for limit in limits_ms[1:]
        for case in base
        if case.protocol in (headline, SAMPLE)
    ]
    return tuple(dict.fromkeys([*base, *more]))


def policies_for(
    plugins: Plugins, has_fusion: bool, names: str
) -> tuple[list[PolicyFacts], list[str]]:
    """Return the policies that can be run, and why each of the others cannot.

    :param has_fusion: whether the bundle has a fusion network
    :param names: on the command line, by commas; '' for all
    :raises EvaluationError: if a policy that is named there cannot be run
    """
    known, without = [], []
    for kind in POLICIES.values():
        reason = ''
        if kind.needs and getattr(plugins, kind.needs) is None:
            reason = 'it needs a trained plug-in, and there is none (`mmedge lab train rivals`)'
        elif kind.alone and not has_fusion:
            reason = 'the bundle has no networks over the window, so that it would be ours'
        if not reason:
            known.append(PolicyFacts(kind.name, kind.short, kind.words))
            continue
        without.append(f'{kind.name} was not run: {reason}')
        if kind.name in _parts(names):
            raise EvaluationError(f'--policies: {without[-1]}; leave it out')
    return known, without


def _names(text: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    names = _parts(text)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise EvaluationError(
                f'there is no {what} {name!r}; the nearest is {near[0]!r} of {", ".join(known)}'
                if near
                else f'there is no {what} {name!r}, and none at all'
            )
    return names


def _parts(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(',') if part.strip()))


def _numbers(
    text: str, option: str, unit: str, low: float, high: float, wrong: str
) -> tuple[float, ...]:
    """Return the numbers of an option, each with or without its unit."""
    parts = _parts(text)
    if not parts:
        raise EvaluationError(f'{option} names no value; leave it out for the usual ones')
    values = []
    for part in parts:
        try:
            value = float(part.removesuffix(unit).strip())
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise EvaluationError(f'{option}: {part!r} is no {wrong}')
        values.append(value)
    return tuple(values)
