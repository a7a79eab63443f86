"""A small part of `make fuzz`, the same cases each time."""

from pathlib import Path
from time import sleep

import pytest
from tests.fuzz import worker
from tests.fuzz.campaigns import campaign
from tests.fuzz.case import Campaign, LawBrokenError, law
from tests.fuzz.limits import TooLongError, TooMuchMemoryError, bounded_memory, bounded_time
from tests.fuzz.runner import Worker, main

# A seed, and as many cases as take a second or two; of those with processes of their own, some that differ.
QUICK = {
    "files": (1, 40), "checkpoints": (1, 12), "dicts": (1, 150), "tables": (4, 25), "queries": (1, 80),
    "table-files": (1, 30), "options": (4, 25), "outputs": (1, 2),
}  # fmt: skip


@pytest.fixture(scope="module")
def process():
    """Return a process of our own, so that memory is bounded and no other test has a say."""
    started = Worker()
    yield started
    started.end()


@pytest.mark.parametrize("name", QUICK)
def test_hostile_inputs(process, name):
    seed, n_cases = QUICK[name]
    outcomes = [process.run(name, seed, number) for number in range(n_cases)]
    again = f"python -m tests.fuzz --campaign {name} --seed {seed} --case"
    failures = [f"{again} {each.number}\n{each.failure}" for each in outcomes if each.failure is not None]
    assert not failures, f"{len(failures)} cases fail\n" + "\n".join(failures)


# ---- the harness itself --------------------------------------------------------------------------------------


def a_campaign(run, seconds=0.1):
    return Campaign("made up", run, seconds=seconds)


def test_a_case_is_settled_by_its_seed_and_number():
    notes = []
    for number in (3, 3, 4):
        worker.attempt(a_campaign(lambda case: notes.append((case.rng.random(), case.np_rng.random()))), 1, number)
    assert notes[0] == notes[1] != notes[2]


def test_what_goes_wrong_is_told():
    def broken(case):
        case.note("on the table")
        law(False, "two and two are five")

    outcome = worker.attempt(a_campaign(broken), 1, 0)
    assert "on the table" in outcome.failure
    assert "two and two are five" in outcome.failure
    assert LawBrokenError.__name__ in outcome.signature


def test_what_never_ends_is_a_failure():
    def endless(case):
        while True:
            pass

    assert "of processor time" in worker.attempt(a_campaign(endless), 1, 0).failure


def test_what_waits_for_nothing_is_a_failure():
    with pytest.raises(TooLongError, match="by the clock"), bounded_time(cpu=5, wall=0.05):
        sleep(5)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not tell")
def test_what_eats_memory_is_a_failure():
    with pytest.raises(TooMuchMemoryError, match="MiB"), bounded_memory(1 << 24):
        assert len(b"x" * (1 << 26))


def test_a_case_that_ends_its_process_is_a_failure(process):
    outcome = process.run("no such campaign", 0, 7)
    assert "exit code 1" in outcome.failure
    assert outcome.number == 7


def test_one_case_alone(capsys):
    assert main(["--campaign", "queries", "--seed", "1", "--case", "0"]) == 0
    assert "queries 0: as it should be" in capsys.readouterr().out


def test_every_campaign_has_a_name_of_its_own():
    assert all(campaign(name).name == name for name in QUICK)
