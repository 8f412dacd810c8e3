"""Rivals as policies over one replayer: when units are encoded, and when a decision is published.

In: an encoded flight, a bundle's service times, trained plug-ins. Out: a schedule, checked for
causality, and the run record of what its decisions show. Look for all policies by name and the run
of one in `policy_run`, for blocking and non-blocking ones in `window_policies`, for ours in
`pipelined`; `mmedge_lab.rivals.mmedge.rivals_bench` makes the table.
"""
