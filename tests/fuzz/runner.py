"""The time of a run, shared out among campaigns; what failed is told at once, and counted at the end."""

import argparse
import multiprocessing
import secrets
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from tests.fuzz.campaigns import CAMPAIGNS, campaign
from tests.fuzz.case import Campaign
from tests.fuzz.limits import WALL_SECONDS
from tests.fuzz.worker import Outcome, attempt, serve

# A worker that has not answered so long after its own limit hangs where no signal reaches it.
GRACE = 30.0


@dataclass
class Tally:
    """How a campaign has gone so far."""

    campaign: Campaign
    tried: int = 0
    failed: int = 0
    seconds: float = 0.0
    signatures: dict[str, int] = field(default_factory=dict)


class Worker:
    """A process that runs cases one after the other, started anew when one has ended it."""

    def __init__(self) -> None:
        self._process: Any = None

    def run(self, name: str, seed: int, number: int) -> Outcome:
        """Run a case; the end or the silence of the process is a failure of the case."""
        if self._process is None:
            self._start()
        start = monotonic()
        try:
            self._connection.send((name, seed, number))
            if self._connection.poll(WALL_SECONDS + GRACE):
                return self._connection.recv()
            fate = "it hangs: no signal reaches it"
        except (EOFError, ConnectionError):
            self._process.join(GRACE)
            fate = f"it has ended its process: exit code {self._process.exitcode}"
        self.end()
        return Outcome(number, monotonic() - start, f"{fate}\n", fate)

    def end(self) -> None:
        """Let the process go."""
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,))
        self._process.start()
        theirs.close()


def run(chosen: list[Campaign], seed: int, seconds: float) -> list[Tally]:
    """Run cases until the time is over, of the campaign that has had least of it."""
    tallies = [Tally(each) for each in chosen]
    workers = {each.name: Worker() for each in chosen}
    end = monotonic() + seconds
    try:
        while monotonic() < end:
            tally = min(tallies, key=lambda each: each.seconds)
            start = monotonic()
            outcome = workers[tally.campaign.name].run(tally.campaign.name, seed, tally.tried)
            tally.seconds += monotonic() - start
            tally.tried += 1
            if outcome.failure is not None:
                _tell(tally, outcome, seed)
    finally:
        for worker in workers.values():
            worker.end()
    return tallies


def _tell(tally: Tally, outcome: Outcome, seed: int) -> None:
    """Print a failure: whole where it is the first of its kind."""
    tally.failed += 1
    seen = tally.signatures.get(outcome.signature, 0)
    tally.signatures[outcome.signature] = seen + 1
    name = tally.campaign.name
    again = f"python -m tests.fuzz --campaign {name} --seed {seed} --case {outcome.number}"
    print(f"FAILED {name} {outcome.number}: {outcome.signature}\n  {again}", flush=True)
    if not seen:
        print(outcome.failure, flush=True)


def _table(tallies: list[Tally]) -> str:
    lines = [f"{'campaign':<14}{'tried':>8}{'failed':>8}{'kinds':>7}{'seconds':>9}"]
    lines += [
        f"{each.campaign.name:<14}{each.tried:>8}{each.failed:>8}{len(each.signatures):>7}{each.seconds:>9.0f}"
        for each in tallies
    ]
    kinds = [(n, each.campaign.name, text) for each in tallies for text, n in each.signatures.items()]
    lines += [f"{n:>6} x {name}: {text}" for n, name, text in sorted(kinds, reverse=True)]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run what the arguments ask for; return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200.0, help="time of the whole run")
    parser.add_argument("--campaign", action="append", choices=[each.name for each in CAMPAIGNS], help="repeatable")
    parser.add_argument("--seed", type=int, help="else one is drawn, and printed")
    parser.add_argument("--case", type=int, help="run this case of a campaign alone, here")
    asked = parser.parse_args(arguments)
    seed = secrets.randbits(32) if asked.seed is None else asked.seed
    chosen = [campaign(name) for name in asked.campaign] if asked.campaign else list(CAMPAIGNS)
    print(f"seed {seed}: {', '.join(each.name for each in chosen)}", flush=True)
    if asked.case is not None:
        return _one(chosen, seed, asked.case)
    tallies = run(chosen, seed, asked.seconds)
    print(_table(tallies))
    return int(any(tally.failed for tally in tallies))


def _one(chosen: list[Campaign], seed: int, number: int) -> int:
    failed = 0
    for each in chosen:
        outcome = attempt(each, seed, number)
        failed += outcome.failure is not None
        print(f"{each.name} {number}: {outcome.failure or 'as it should be'} ({outcome.seconds:.1f} s)")
    return int(bool(failed))
