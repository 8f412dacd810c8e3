"""What is compared: policies, protocols, shares of the processor and latency limits."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mmedge_ros.lab.evaluation import EvaluationError
from mmedge_ros.lab.policies.schedule import PROTOCOLS, SAMPLE, STREAM

OURS, BLOCKING = 'ours', 'blocking'
_SHORTEST_LIMIT_MS, _LONGEST_LIMIT_MS = 5.0, 5000.0
_LEAST_SHARE = 5.0


class PolicyFacts(NamedTuple):
    """A policy as reports speak of it; ``words`` say in a sentence what it does."""

    name: str
    short: str
    words: str

    @property
    def is_ablation(self) -> bool:
        """Whether it is ours without some part."""
        return self.name.startswith(f'{OURS}_')


class ComparisonCase(NamedTuple):
    """One thing to judge: a policy, how it is run, and under which limits.

    ``share`` of the processor in percent, ``limit_ms`` the latency limit.
    """

    policy: str
    protocol: str
    share: float
    limit_ms: float

    @property
    def key(self) -> str:
        """A name for files and for figures that are kept."""
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
        """Return what is known of a policy."""
        return next(facts for facts in self.policies if facts.name == policy)


def plan_comparison(
    known: Sequence[PolicyFacts],
    policies: str = '',
    protocols: str = '',
    limits: str = '50ms',
    shares: str = '100',
) -> ComparisonPlan:
    """Plan what to judge from what was asked for on the command line.

    Every policy runs at the first share and the first limit in each protocol; shares and
    limits vary one at a time from there, in the stream protocol where that is run, for alone
    and unloaded a window meets no contention worth showing.

    :param policies: names, by commas; '' for all
    :raises EvaluationError: for an unknown name or a number out of range
    """
    names = [facts.name for facts in known]
    asked = _names(policies, names, 'policy') or tuple(names)
    chosen = tuple(facts for facts in known if facts.name in asked)
    used = _names(protocols, PROTOCOLS, 'protocol') or PROTOCOLS
    ordered = tuple(protocol for protocol in PROTOCOLS if protocol in used)
    limits_ms = tuple(_limit(text) for text in _parts(limits, '--limits'))
    percents = tuple(_share(text) for text in _parts(shares, '--shares'))
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


def _names(text: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(part.strip() for part in text.split(',') if part.strip()))
    for name in asked:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise EvaluationError(
                f'there is no {what} {name!r}; the nearest is {near[0]!r} of {", ".join(known)}'
                if near
                else f'there is no {what} {name!r}, and none at all'
            )
    return asked


def _parts(text: str, option: str) -> tuple[str, ...]:
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(',') if part.strip()))
    if not parts:
        raise EvaluationError(f'{option} names no value; leave it out for the usual ones')
    return parts


def _limit(text: str) -> float:
    value = _number(text.removesuffix('ms').strip())
    if not _SHORTEST_LIMIT_MS <= value <= _LONGEST_LIMIT_MS:
        raise EvaluationError(
            f'--limits: {text!r} is no latency limit; write milliseconds from '
            f'{_SHORTEST_LIMIT_MS:g} to {_LONGEST_LIMIT_MS:g}, such as 50ms'
        )
    return value


def _share(text: str) -> float:
    value = _number(text.removesuffix('%').strip())
    if not _LEAST_SHARE <= value <= 100.0:
        raise EvaluationError(
            f'--shares: {text!r} is no share of the processor; write percent from '
            f'{_LEAST_SHARE:g} to 100'
        )
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
