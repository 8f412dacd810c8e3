"""Tables on standard output, said the same way by several commands."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from mmedge_ros.commands.display import one_line

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 120


def print_parts(*parts: Table | str) -> None:
    """Print tables and sentences on standard output."""
    from rich.console import Console

    # Into a file or a pipe, tables are as wide as they are.
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH)
    for part in parts:
        console.print(part, markup=False)


def new_table(title: str, *columns: str, left: Container[str] = ()) -> Table:
    """Return a table without rows, the first column and those named ``left`` to the left."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(one_line(title)), title_justify='left', box=None, pad_edge=False)
    for number, column in enumerate(columns):
        is_left = not number or column in left
        table.add_column(column, justify='left' if is_left else 'right', overflow='fold')
    return table


def add_row(table: Table, *cells: object) -> None:
    """Add a row; nothing is shown as a dash."""
    from rich.text import Text

    table.add_row(*(Text(one_line('-' if cell is None else str(cell))) for cell in cells))
