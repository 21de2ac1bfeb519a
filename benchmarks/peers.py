"""The product beside the programs that measure the same, in turn, in one run.

    STREAM=path CPUFP=path LIKWID=path CARM=path TINYMEMBENCH=path python benchmarks/peers.py
    python benchmarks/peers.py --stream PATH --rounds 10 --threads 1 2 --only stream cpufp

Programs are found by flag, by environment or on the PATH, and never installed. STREAM: `gcc -O3
-march=native -fopenmp -DSTREAM_ARRAY_SIZE=20000000 stream.c` (160 MB arrays, as here). In each round
each program runs once and the product measures the same things right after it, so that a change of the
machine's state meets both; its repetitions are summed up as the program does its own (STREAM: best,
CARM: median, likwid-bench and cpufp: mean). Ratios above 1: the product reads higher. The last line is
one JSON object with the ratios of the best of all rounds and of their medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from collections.abc import Sequence

from peers_programs import PEERS, Peer

from roof_agent.kernels import Backend, Request, load

ARRAY_BYTES = 160_000_000
KIB = 1 << 10
# CARM's own choice on a core with 32 KiB, 512 KiB and 32 MiB: three quarters of each level.
LEVEL_BYTES = {"l1": 24 * KIB, "l2": 384 * KIB, "l3": 24 * KIB * KIB, "dram": 512 * KIB * KIB}


def request(key: str, cpus: tuple[int, ...]) -> tuple[Request, str]:
    """Return what the product measures under `key`, and of which amount the rate is."""
    short = {"repetition_seconds": 0.02, "min_repetitions": 10, "spread": 0.0}
    limits = {"warmup_seconds": 0.05, "budget_seconds": 0.3}
    if key in ("fp32", "fp64"):
        return Request("fma", f"float{key[2:]}", cpus, **short, **limits), "flops"
    level, _, mix = key.partition("_")
    if level in LEVEL_BYTES:
        kernel, store = ("read", "") if mix == "read" else ("add", "plain")
        size = LEVEL_BYTES[level] * (len(cpus) if level in ("l1", "l2") else 1)
        return Request(kernel, "float32", cpus, store, "", size, **short, **limits), "stream_bytes"
    kernel, _, nontemporal = key.partition("_")
    store = "" if kernel == "read" else "nontemporal" if nontemporal else "plain"
    arrays = {"read": 1, "fill": 1, "copy": 2, "scale": 2, "update": 2}.get(kernel, 3)
    return Request(
        kernel, "float64", cpus, store, "", arrays * ARRAY_BYTES, **short, **limits
    ), "stream_bytes"


def measure(backend: Backend, peer: Peer, key: str, cpus: tuple[int, ...]) -> float:
    """Return the product's rate, of a few repetitions summed up as the peer does its own."""
    what, amount = request(key, cpus)
    result = backend.run(what)
    return float(getattr(result.work, amount)) / peer.summary(result.seconds)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print a table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", choices=[peer.name for peer in PEERS])
    for peer in PEERS:
        parser.add_argument(f"--{peer.name}", metavar="PATH")
    options = parser.parse_args(argv)
    peers = find(options)
    if not peers:
        parser.error("none of " + ", ".join(peer.program for peer in PEERS) + " is here")
    backend = load("native")
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    ratios: dict[str, float] = {}
    medians: dict[str, float] = {}
    print(f"{'':26}{'product best':>14}{'median':>9}{'peer best':>12}{'median':>9}{'ratio':>8}{'median':>8}")
    for threads in options.threads:
        if threads > len(cpus):
            continue
        for name, (ours, theirs) in alternate(backend, peers, cpus[:threads], options.rounds).items():
            key = f"{name}_{threads}t"
            ratios[key] = max(ours) / max(theirs)
            medians[key] = statistics.median(ours) / statistics.median(theirs)
            print(
                f"{key:26}{max(ours) / 1e9:14.2f}{statistics.median(ours) / 1e9:9.2f}"
                f"{max(theirs) / 1e9:12.2f}{statistics.median(theirs) / 1e9:9.2f}"
                f"{ratios[key]:8.3f}{medians[key]:8.3f}",
                flush=True,
            )
    rounded = [{key: round(value, 4) for key, value in each.items()} for each in (ratios, medians)]
    print(json.dumps({"bench": "peers", "ratios": rounded[0], "median_ratios": rounded[1]}))


def find(options: argparse.Namespace) -> list[Peer]:
    """Return the programs that are here and wanted."""
    found = []
    for peer in PEERS:
        path = peer.find(getattr(options, peer.name), os.environ)
        if path and (options.only is None or peer.name in options.only):
            found.append(peer(path))
    return found


def alternate(
    backend: Backend, peers: Sequence[Peer], cpus: tuple[int, ...], rounds: int
) -> dict[str, tuple[list[float], list[float]]]:
    """Return the product's and the programs' rates of all rounds by name."""
    rates: dict[str, tuple[list[float], list[float]]] = {}
    for _ in range(rounds):
        for peer in peers:
            try:
                figures = peer.measure(cpus)
            except subprocess.CalledProcessError as error:
                raise SystemExit(f"{peer.path}: {error.stderr or error}") from error
            for key, rate in figures.items():
                ours, theirs = rates.setdefault(f"{peer.name}_{key}", ([], []))
                theirs.append(rate)
                ours.append(measure(backend, peer, key, cpus))
    return rates


if __name__ == "__main__":
    main()
