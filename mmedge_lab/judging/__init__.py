"""The one frame of judging: rows on flights, sums, intervals by seed, one table.

A *row* is a name and a function that takes an opened flight and returns sums by column. A *bench*
(`bench.Bench`) is rows, the flights they are judged on, and *figures*, each a quotient or quantile
of what all flights gave together. `run_bench.judge` judges rows on flights, in several processes,
and keeps what was judged by row, flight, bundle and code. `bench_table` draws intervals by seed
(`flight_bootstrap`), compares rows with references in the same drawings, and writes JSON,
Markdown and a page. `judged_flight` opens a flight that rows replay in virtual time.

A bench is a module with ``bench(request, *, settings)`` and one line in
`mmedge_lab.commands.bench_run.BENCHES`; `mmedge lab bench NAME` runs it. `result_pages` makes the
pages of the tables that are kept in docs/results.
"""

from pathlib import Path

from mmedge_ros.report import ReportError

TEMPLATES = Path(__file__).parent / 'templates'


class EvaluationError(ReportError):
    """Something cannot be judged; the message names the remedy."""
