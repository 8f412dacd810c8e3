"""Writes the pages of docs/results from the tables kept there.

python -m mmedge_lab.judging.result_pages FOLDER [NAME.json...]

brings NAME.json of benches into the folder, and writes the page NAME.md of every table in it. What
people wrote below the line that ends a page is kept, and a page without one as a whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench_table import kept_page
from mmedge_ros.report.report_files import write_files


def write_pages(folder: Path, tables: Sequence[Path] = ()) -> list[Path]:
    """Bring tables into a folder, write the pages of all that are in it, and return these.

    :raises EvaluationError: for a file that is no table of a bench
    """
    for path in tables:
        write_files(folder, {path.name: path.read_bytes()})
    pages = []
    for path in sorted(folder.glob('*.json')):
        page = path.with_suffix('.md')
        try:
            text = kept_page(json.loads(path.read_text()), page)
        except (ValueError, KeyError, TypeError) as err:
            raise EvaluationError(f'{path} is no table of a bench: {err!r}') from err
        write_files(folder, {page.name: text.encode()})
        pages.append(page)
    return pages


if __name__ == '__main__':
    folder, *tables = map(Path, sys.argv[1:])
    print(*write_pages(folder, tables), sep='\n')
