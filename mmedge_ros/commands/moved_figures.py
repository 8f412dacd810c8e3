"""What moved against kept figures of an evaluation, shown in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmedge_ros.commands.display import say

if TYPE_CHECKING:
    from mmedge_ros.lab.comparison.regression import Move


def kept_figures_moved(report: dict[str, Any], against: Path | None, store: Path | None) -> bool:
    """Compare with kept figures and keep new ones; returns whether anything moved too far."""
    from mmedge_ros.lab.comparison.regression import moves, write_kept

    found = [] if against is None else moves(report, against)
    if store is not None:
        write_kept(report, store)
        say(f'figures: {store}')
    moved = [move for move in found if not move.within]
    if against is not None:
        say(f'{len(moved)} of {len(found)} kept figures moved by more than they may')
    if moved:
        _show(moved)
    return bool(moved)


def _show(moved: list[Move]) -> None:
    from mmedge_ros.commands.bench import add_row, new_table, print_parts

    table = new_table('what moved', 'case', 'figure', 'kept', 'now', 'by', 'allowed')
    for move in moved:
        by = '' if move.kept is None or move.now is None else f'{move.now - move.kept:+.4g}'
        values = ['missing' if v is None else f'{v:.4g}' for v in (move.kept, move.now)]
        add_row(table, move.case, move.figure, *values, by, f'{move.tolerance:g}')
    print_parts(table)
