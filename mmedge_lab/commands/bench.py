"""The group of all benches."""

from __future__ import annotations

from mmedge_lab.commands.bench_run import add_benches
from mmedge_ros.commands.command_group import CommandGroup

bench_app = CommandGroup(
    no_args_is_help=True,
    help='Judge parts of the system beside rivals: rows on flights, one table each.',
)
add_benches(bench_app)
