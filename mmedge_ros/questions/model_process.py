"""The process of a model server: xllamacpp on a unix socket, until it is killed.

Says on standard output, in a line of JSON, that it is ready or what is wrong.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import psutil

from mmedge_ros.untrusted_files import brief

_HTTP_THREADS = 2


def main() -> None:
    """Serve what the JSON on the command line describes."""
    settings = json.loads(sys.argv[1])
    out = os.dup(1)
    # Libraries write what they like to both.
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nothing, number)
    psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)
    server = None
    try:
        server = _serve(settings)
        words: dict[str, Any] = {'ready': True}
    except ImportError as err:
        problem = f'xllamacpp, which runs models, cannot be imported ({brief(err)})'
        remedy = 'pip install xllamacpp, or name the endpoint of a server of your own'
        words = {'problem': f'{problem}: {remedy}'}
    except (RuntimeError, ValueError, MemoryError, OSError):
        words = {'problem': _wrong_file(settings)}
    os.write(out, json.dumps(words).encode() + b'\n')
    while server is not None:
        signal.pause()


def _serve(settings: dict[str, Any]) -> Any:
    # A crash must not wait for a debugger that a library starts.
    os.environ['GGML_NO_BACKTRACE'] = '1'
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings['model']
    if settings['projector']:
        params.mmproj.path = settings['projector']
    # A name that ends in .sock is one.
    params.hostnames = [settings['socket']]
    params.n_ctx = settings['context']
    params.n_parallel = 1
    params.cpuparams.n_threads = settings['threads']
    params.cpuparams_batch.n_threads = settings['threads']
    params.n_threads_http = _HTTP_THREADS
    # What every description begins with is read once; nothing more is worth keeping.
    params.cache_prompt = True
    params.cache_ram_mib = 0
    params.warmup = False
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = -1
    return xllamacpp.Server(params)


def _wrong_file(settings: dict[str, Any]) -> str:
    model = os.path.basename(settings['model'])  # noqa: PTH119
    projector = ', and whether the projector belongs to it' if settings['projector'] else ''
    return f'{model} cannot be loaded; check that the file is whole{projector}'


if __name__ == '__main__':
    main()
