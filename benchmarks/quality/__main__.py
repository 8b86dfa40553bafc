"""``python -m benchmarks.quality``: run what is missing, then tables, claims and a picture."""

from __future__ import annotations

import argparse
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from .instances import (
    ALL_PAPER_SIZES,
    HERE,
    JUDGED_BUDGETS,
    JUDGED_SEEDS,
    PAPER_SIZES,
    SEEDS,
    TUNED_SEEDS,
    Instance,
    budget_instances,
    paper_instances,
    price_instances,
)
from .peers import BASELINES, LONG, PEERS, PRICE_PEERS, Peer
from .report import Comparison, report
from .runner import Session
from .store import BestKnown, Results

INTERRUPTED = 130


def matches(patterns: str | None, *names: str) -> bool:
    """Tell whether one of the comma-separated names or globs fits one of the names."""
    if patterns is None:
        return False
    wanted = [pattern.strip() for pattern in patterns.split(",")]
    return any(fnmatchcase(name, pattern) for name in names for pattern in wanted)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality",
        description="Objective and time of blockl0 and its peers. Patterns are names or globs, "
        "separated by commas; the name of a peer stands for all its methods, the name of a "
        "family or group for all its instances.",
    )
    parser.add_argument("--only", metavar="PATTERN", default="*", help="methods to run")
    parser.add_argument("--skip", metavar="PATTERN", help="methods not to run")
    parser.add_argument("--instances", metavar="PATTERN", default="*", help="instances to run")
    parser.add_argument("--rerun", metavar="PATTERN", help="forget these methods and run them")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one cell")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of results")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="data sets of each kind")
    parser.add_argument("--all-sizes", action="store_true", help="the paper's s = 3, 8, ..., 48")
    parser.add_argument("--report", action="store_true", help="run nothing, only report")
    parser.add_argument("--clock", choices=("seconds", "cpu"), default="seconds")
    parser.add_argument("--long", action="store_true", help="long runs for the best known")
    parser.add_argument("--paper", action="store_true", help="only: against the paper's methods")
    parser.add_argument("--prices", action="store_true", help="only: the price form")
    parser.add_argument("--tuned", action="store_true", help="the draws that were tuned on")
    parser.add_argument("--list", action="store_true", help="name methods and instances")
    return parser.parse_args(arguments)


def choose(options: argparse.Namespace) -> list[Instance]:
    """The instances that fit the pattern."""
    seeds = tuple(range(options.seeds))
    if options.prices:
        every = price_instances(TUNED_SEEDS if options.tuned else JUDGED_SEEDS[: options.seeds])
    elif options.paper:
        every = paper_instances(seeds)
    else:
        draws = seeds if options.tuned else JUDGED_BUDGETS[: options.seeds]
        every = budget_instances(ALL_PAPER_SIZES if options.all_sizes else PAPER_SIZES, draws)
    return [
        instance
        for instance in every
        if matches(options.instances, instance.name, instance.family.name, instance.family.group)
    ]


def run_budgets(options: argparse.Namespace, chosen: list[Instance]) -> bool:
    """Run the missing cells, report, and tell whether no claim failed."""
    results = Results(options.out / "results.csv")
    best = BestKnown(options.out / "best_known.json")
    owner: dict[str, Peer] = {method: peer for peer in PEERS for method in peer.methods}

    def named(pattern: str | None, method: str) -> bool:
        return matches(pattern, method, owner[method].name)

    def wanted(method: str, instance: Instance) -> bool:
        again = named(options.rerun, method)
        return (named(options.only, method) or again) and not named(options.skip, method)

    if not options.report:
        names = [instance.name for instance in chosen]
        again = [method for method in owner if named(options.rerun, method)]
        forgotten = results.forget((name, method) for name in names for method in again)
        if forgotten:
            print(f"{forgotten} cells forgotten")
        peers = [p for p in PEERS if any(wanted(method, chosen[0]) for method in p.methods)]
        session = Session(results, best, options.out / "logs", options.timeout, wanted)
        session.run_all(chosen, peers)
        if options.long:
            session.run_long(chosen, LONG, again=matches(options.rerun, *LONG.methods))
    return write_report(options, chosen, results, best)


def write_report(
    options: argparse.Namespace, chosen: list[Instance], results: Results, best: BestKnown
) -> bool:
    """Print and write tables, claims and picture; tell whether no claim failed."""
    comparison = Comparison(results, best, (i.name for i in chosen), options.clock)
    if not comparison.cells:
        print("no results yet")
        return True
    text, fine = report(comparison)
    print(f"\n{text}")
    (options.out / "report.txt").write_text(text + "\n")
    try:
        from .plot import plot

        plot(comparison, options.out / "gap_against_time.png")
    except ImportError as error:
        print(f"!!! no picture: {error}")
    return fine


def run_against_paper(options: argparse.Namespace, chosen: list[Instance]) -> bool:
    """The check against the paper's methods."""
    from .paper import judge, run_paper

    again = [method for method in BASELINES.methods if matches(options.rerun, method)]
    results = Results(options.out / "paper.csv")
    if not options.report:
        results = run_paper(chosen, options.out, options.timeout, again)
    text, fine = judge(results, chosen)
    print(f"\n{text}")
    (options.out / "paper.txt").write_text(text + "\n")
    return fine


def run_price_form(options: argparse.Namespace, chosen: list[Instance]) -> bool:
    """The price form, at the draws that only judge unless --tuned asks for the others."""
    from .prices import Prices, judge, run_prices

    owner = {method: peer.name for peer in PRICE_PEERS for method in peer.methods}

    def wanted(method: str, instance: Instance) -> bool:
        names = (method, owner[method])
        is_asked = matches(options.only, *names) and not matches(options.skip, *names)
        return is_asked and not options.report

    is_long = options.long and not options.report
    found = run_prices(chosen, options.out, options.timeout, wanted, is_long)
    text, fine = judge(Prices(*found, chosen))
    print(f"\n{text}")
    (options.out / "prices.txt").write_text(text + "\n")
    return fine


def main() -> int:
    """Run; 1 when a claim failed."""
    options = parse()
    chosen = choose(options)
    if not chosen:
        print(f"no instance fits {options.instances!r}; --list names them")
        return 2
    if options.list:
        print("\n".join(f"{peer.name}: {', '.join(peer.methods)}" for peer in PEERS))
        print("\n".join(instance.name for instance in chosen))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    run = run_against_paper if options.paper else run_budgets
    run = run_price_form if options.prices else run
    try:
        return 0 if run(options, chosen) else 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
