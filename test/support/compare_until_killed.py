"""Compares made-up policies on flights; a process of its own, so that it can be killed.

Arguments: folder of a tiny bundle, folder of the flights, folder of the report.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fake_policies import FACTS, run_fake

from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.rivals.comparison import figures, run
from mmedge_lab.rivals.comparison.plan import plan_comparison


def main(bundle: Path, flights: Path, out: Path) -> None:
    plan = plan_comparison(FACTS, 'ours,blocking', '', '50ms', '100,50')
    named = run.named_flights([('set', sorted(flights.iterdir()))])
    run.compare(
        run.ComparisonRequest(
            bundle=bundle,
            sets=('set',),
            flights=named,
            plan=plan,
            run=run_fake,
            profile=NOMINAL,
            out=out,
            jobs=1,
            timing=False,
        )
    )


if __name__ == '__main__':
    # Figures take seconds; they have tests of their own.
    figures.draw_comparison = lambda report: []
    main(*map(Path, sys.argv[1:]))
