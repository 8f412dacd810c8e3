"""`mmedge demo`: fly, perceive and report, on any machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.live_view import ViewOption, open_view
from mmedge_ros.commands.options import NetworkOption, NoPicturesOption, flag, option


def demo(
    out: Annotated[Path, option('--out', 'FOLDER', 'folder of the report')] = Path('out/demo'),
    bag: Annotated[
        Path | None,
        option('--bag', 'BAG', 'play this recording instead of a simulated flight', exists=True),
    ] = None,
    scenario: Annotated[
        str, option('--scenario', 'NAME', 'see mmedge simulate --list \\[street_day_middle]')
    ] = '',
    seconds: Annotated[
        float | None, option('--seconds', 'S', 'length of the simulated flight, s \\[20]')
    ] = None,
    seed: Annotated[int | None, option('--seed', 'N', 'of the simulated flight \\[7]')] = None,
    network: NetworkOption = False,
    view: ViewOption = False,
    no_pictures: NoPicturesOption = False,
    flight_only: Annotated[
        bool, flag('--flight-only', 'simulate the flight and end', hidden=True)
    ] = False,
) -> None:
    """See it work: simulate a flight, track its people live, and write a report.

    Every node is a process; rates and levels are chosen by what this machine keeps up with. What
    a simulated flight saw is kept in a memory, with a page to search it. With
    --view the flight is shown in the browser, and after the report it plays over and over until
    Ctrl-C.
    """
    if bag is not None and (scenario or seconds is not None or seed is not None):
        raise typer.BadParameter('a recording is as it is; leave out --bag, or what it replaces')
    from mmedge_ros.commands.errors import plain_errors, require_ros

    with plain_errors():
        if flight_only:
            # Needs neither ROS nor the messages: the setup does it while it builds them.
            if bag is None:
                _simulated(out / 'flight', scenario, seconds, seed)
            return
        require_ros()
        from mmedge_ros.commands.replay_run import ReplayRequest, run_replay
        from mmedge_ros.ros.graph.middleware_profile import set_profile

        set_profile(network)
        flight = bag or _simulated(out / 'flight', scenario, seconds, seed)
        port = open_view(view)
        run_replay(
            ReplayRequest(
                bag=str(flight),
                out=out,
                live=True,
                optimise=True,
                view=port,
                show_pictures=not no_pictures,
            )
        )
        if bag is None and not no_pictures:
            remember(flight, out)
        if port:
            _play_on(flight, out / 'logs/view', port)


def remember(flight: Path, out: Path) -> None:
    """Keep what a flight saw, and name the page of it in the report of a folder."""
    from mmedge_ros import MmedgeError
    from mmedge_ros.encoding.bundle.default_model import bundle_folders
    from mmedge_ros.memory.build import build_memory
    from mmedge_ros.memory.page import write_memory_page
    from mmedge_ros.memory.store import PAGE
    from mmedge_ros.report.report import link_memory

    try:
        with StatusLine(f'remembering {flight.name}') as line:
            folder = build_memory(str(flight), on_share=line.advance).folder
        write_memory_page([folder], [*bundle_folders()], folder / PAGE)
        link_memory(out, f'{folder.name}/{PAGE}')
    except MmedgeError as err:
        # The report is there all the same.
        say(f'note: the flight is not remembered: {err}')
        return
    say(f'what the flight saw, to be searched in words in a browser: {folder / PAGE}')


def _play_on(flight: Path, logs: Path, port: int) -> None:
    """Play the flight for those who watch, until interrupted."""
    from mmedge_ros.ros.graph.options import GraphOptions
    from mmedge_ros.ros.sessions.up_session import run_up

    say('the report is written; the live view plays the flight over and over, Ctrl-C ends it')
    options = GraphOptions(bag=str(flight), loop=True, optimise=True, logs=str(logs), view=port)
    with StatusLine('live view') as line:
        run_up(options, line.show, say)


def _simulated(folder: Path, scenario: str, seconds: float | None, seed: int | None) -> Path:
    """Simulate a flight; '' and None mean the demo's own scenario, length (s) and seed."""
    from mmedge_lab.simulation.flight import DEMO_FLIGHT, kept_flight
    from mmedge_lab.simulation.flight_folder import read_description

    wanted = replace(
        DEMO_FLIGHT,
        scenario=scenario or DEMO_FLIGHT.scenario,
        seconds=DEMO_FLIGHT.seconds if seconds is None else seconds,
        seed=DEMO_FLIGHT.seed if seed is None else seed,
    )
    if read_description(folder) == wanted:
        return folder
    with StatusLine(f'simulating {wanted.seconds:g} s of {wanted.scenario}') as line:
        return kept_flight(folder, wanted, line.advance)
