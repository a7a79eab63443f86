"""Tables, figure and verdicts against numbers written by hand."""

import numpy as np
import pytest

from jointwise.experiments.distances import (
    CONTROL,
    CPD,
    DEFAULT,
    INDEPENDENCE,
    METHODS,
    MIXTURES,
    PAPER,
    Distances,
    Measurement,
)
from jointwise.experiments.verdicts import Claim, above_independence, verdicts

NUMBERS = {
    INDEPENDENCE: {500: [0.5, 0.7], 5_000: [0.5, 0.6]},
    PAPER: {500: [0.6, 0.8], 5_000: [0.3, 0.4]},
    CONTROL: {500: [0.6, 0.6], 5_000: [0.2, 0.2]},
    DEFAULT: {500: [0.4, 0.6], 5_000: [0.1, 0.2]},
    CPD: {500: [0.9, 1.1], 5_000: [0.3, 0.2]},
    "GMM-5": {500: [1.0, 0.9], 5_000: [0.6, 0.6]},
    "GMM-10": {500: [1.2], 5_000: [0.5, 0.7]},
}


def distances(numbers):
    """Return distances whose seconds are ten times D."""
    return Distances(
        [
            Measurement(method, n, seed, d, 10 * d)
            for method, sizes in numbers.items()
            for n, ds in sizes.items()
            for seed, d in enumerate(ds)
        ]
    )


@pytest.fixture
def found():
    return distances(NUMBERS)


def test_the_best_mixture_is_picked_truth_by_truth(found):
    assert found.mixtures == ["GMM-5", "GMM-10"]
    assert found.of(MIXTURES, 500).tolist() == [1.0, 0.9]
    assert found.of(MIXTURES, 5_000).tolist() == [0.5, 0.6]
    assert found.seconds(MIXTURES, 500) == pytest.approx((10 + 9 + 12) / 2)


def test_a_truth_without_any_mixture_is_infinitely_far():
    found = distances(NUMBERS | {"GMM-5": {500: [1.0], 5_000: [0.6, 0.6]}})
    assert found.of(MIXTURES, 500).tolist() == [1.0, np.inf]
    assert "| best GMM | inf | 0.550 ± 0.050 |" in found.table()
    assert "**Holds:**" in Claim(PAPER, (MIXTURES,)).verdict(found)
    without = distances({method: sizes for method, sizes in NUMBERS.items() if "GMM" not in method})
    assert without.mixture_table() == "No Gaussian mixture could be fitted."


def test_a_claim_that_holds_names_the_closest_rival(found):
    assert Claim(DEFAULT, (PAPER, INDEPENDENCE)).verdict(found) == (
        "**Holds:** JUPAD() below JUPAD as in the paper and independence at every N_s. The closest: 0.500 against "
        "0.600 of independence at N_s = 500 (difference -0.100 ± 0.000)."
    )


def test_a_claim_that_fails_lists_every_exception_and_why(found):
    line = Claim(PAPER, (CPD, MIXTURES)).verdict(found)
    assert line == (
        "**Does not hold** in 1 of 4 comparisons: JUPAD as in the paper below CPD-3 and best GMM at every N_s. The "
        "exceptions: 0.350 against 0.250 of CPD-3 at N_s = 5,000 (difference +0.100 ± 0.100). Why: at N_s = 5,000 it "
        "has 0.200 with the true atoms, and JUPAD(), from rows, 0.150: the atoms are the cause."
    )
    far = distances(NUMBERS | {CONTROL: {500: [0.6, 0.6], 5_000: [0.3, 0.3]}})
    assert Claim(PAPER, (CPD,)).verdict(far).endswith("the fit to pairs is the cause, not the atoms.")
    assert "Why" not in Claim(CPD, (PAPER,)).verdict(found)


def test_equal_or_infinite_distances_do_not_count_as_below(found):
    assert "Does not hold" in Claim(CPD, (CPD,)).verdict(found)
    infinite = distances({CPD: {500: [np.inf, 1.0]}, DEFAULT: {500: [np.inf, 0.5]}})
    assert "Does not hold" in Claim(DEFAULT, (CPD,)).verdict(infinite)


def test_a_claim_up_to_some_rows_says_whether_it_holds_for_more(found):
    line = Claim(PAPER, (CPD,), largest=500).verdict(found)
    assert line.startswith("**Holds:** JUPAD as in the paper below CPD-3 up to N_s = 500. The closest: 0.700 against")
    assert (
        "For more rows it does not hold: 0.350 against 0.250 of CPD-3 at N_s = 5,000 (difference +0.100 ± 0.100). Why"
        in line
    )
    assert Claim(DEFAULT, (CPD,), largest=500).verdict(found).endswith(" It also holds for more rows.")


def test_a_claim_from_some_rows_on_ignores_fewer(found):
    assert "in 1 of 1 comparisons" in Claim(PAPER, (CPD,), smallest=1_000).verdict(found)
    few = Distances([m for m in found.measured if m.n == 500])
    assert Claim(PAPER, (CPD,), smallest=1_000).verdict(few) == (
        "**Not tried:** JUPAD as in the paper below CPD-3 from N_s = 1,000 on."
    )


def test_methods_above_independence_are_listed(found):
    line = "Above independence: JUPAD as in the paper at N_s = 500; CPD-3 at N_s = 500; best GMM at N_s = 500."
    assert above_independence(found) == line
    assert verdicts([Claim(DEFAULT, (PAPER,))], found).split("\n")[1:] == [f"- {line}"]
    level = distances(dict.fromkeys((*METHODS, "GMM-5"), NUMBERS[DEFAULT]))
    assert above_independence(level) == "No method is above independence anywhere."


def test_the_table_has_means_errors_seconds_and_the_lowest_in_bold(found):
    lines = found.table().split("\n")
    assert lines[0] == "| D | N_s = 500 | N_s = 5,000 | seconds at 5,000 |"
    assert lines[2] == "| JUPAD() | **0.500 ± 0.100** | **0.150 ± 0.050** | 1.5 |"
    assert lines[4] == "| CPD-3 | 1.000 ± 0.100 | 0.250 ± 0.050 | 2.5 |"
    assert lines[7] == "| JUPAD as in the paper, true atoms | 0.600 ± 0.000 | 0.200 ± 0.000 | 2.0 |"
    assert len(lines) == 2 + len(METHODS) + 1


def test_the_table_of_mixtures_says_how_many_truths_it_has(found):
    lines = found.mixture_table().split("\n")
    assert "| GMM-5 | 0.950 ± 0.050 | 0.600 ± 0.000 |" in lines
    assert "| GMM-10 | 1.200 (1) | 0.600 ± 0.100 |" in lines
    fewer = Distances([m for m in found.measured if (m.method, m.n) != ("GMM-10", 500)])
    assert "| GMM-10 |  | 0.600 ± 0.100 |" in fewer.mixture_table()


def test_the_figure_has_every_method_in_order(found, tmp_path, monkeypatch):
    drawn = []
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("jointwise.plots.plot_distances", lambda rows, ax: drawn.extend(rows))
    found.draw(tmp_path / "new" / "figure.png")
    assert tuple(dict.fromkeys(row["method"] for row in drawn)) == METHODS
    assert len(drawn) == len(METHODS) * 4
    assert (tmp_path / "new" / "figure.png").read_bytes().startswith(b"\x89PNG")
