"""Answers to random questions P(event | conditions) about a mixed table, against frequencies in held-out rows.

Half of the rows are for training, half are held out. Two answers without a model are shown beside the model's: counting
the training rows that satisfy the conditions, and ignoring the conditions. Held-out frequencies are noisy, so even the
true probabilities would have an error; `noise` is its mean. Counting has the noise of both halves, about 1.4 times that
of one.

`python -m benchmarks answers` asks about Adult; `--table` chooses another table, `--seed` another split and other
questions, `--questions` how many (60 are few: on Adult the ratio is then .8 to 1.4 by the split, with 300 it is .99 to
1.12), `--model` JUPAD instead of the stack. Any density can be measured: see `answer` and `report`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.generated import generated
from benchmarks.measure import timed
from benchmarks.questions import (
    FORMS,
    MIN_ROWS,
    N_QUESTIONS,
    Counted,
    Question,
    Table,
    count,
    halves,
    ignoring_conditions,
    make_questions,
    noise,
)
from benchmarks.report import Row, publish
from jointwise import JUPAD, JointDensity, JointEstimator
from jointwise.datasets import fetch_adult, fetch_penguins

TABLES: dict[str, Callable[[], Table]] = {
    "adult": lambda: fetch_adult().table,
    "penguins": lambda: fetch_penguins().table,
    "generated-a": partial(generated, 0),
    "generated-b": partial(generated, 1),
}
MODELS = {"stack": JointEstimator, "jupad": JUPAD}
# Only 172 penguins are held out.
FEWEST_ROWS = {"penguins": 20}
N_WORST = 5


@dataclass(frozen=True)
class Exam:
    """Questions, and their answers without a model.

    Parameters
    ----------
    questions : list of Question
    truth : Counted
        Answers of the held-out rows, with which all others are compared.
    counted : Counted
        Answers of the training rows.
    ignoring : array of shape (n,)
        Share of the training rows in which the event holds, whatever the conditions.
    noise : array of shape (n,)
        Mean absolute error of the true answers.
    """

    questions: list[Question]
    truth: Counted
    counted: Counted
    ignoring: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(
        cls, train: Table, held_out: Table, seed: int, n_questions: int = N_QUESTIONS, min_rows: int = MIN_ROWS
    ) -> Exam:
        """Make questions and count their answers."""
        questions = make_questions(train, held_out, seed, n_questions, min_rows)
        truth, counted = count(held_out, questions), count(train, questions)
        # both halves together estimate the true answers best
        n_rows = truth.n_rows + counted.n_rows
        known = (truth.shares * truth.n_rows + counted.shares * counted.n_rows) / n_rows
        return cls(questions, truth, counted, ignoring_conditions(train, questions), noise(truth, known))


def run(table: str = "adult", seed: int = 0, model: str = "stack", n_questions: int = N_QUESTIONS) -> list[Row]:
    """Fit half of a table, print the worst answers and return the errors."""
    train, held_out = halves(TABLES[table](), seed)
    exam = Exam.of(train, held_out, seed, n_questions, FEWEST_ROWS.get(table, MIN_ROWS))
    fitted, fit_seconds = timed(partial(MODELS[model](random_state=0).fit, train))
    answers, answer_seconds = timed(partial(answer, fitted.density_, exam.questions))
    publish(f"answers-worst-{table}", worst(exam, answers))
    seconds = {"seconds of fit": f"{fit_seconds:.1f}", "of answers": f"{answer_seconds:.2f}"}
    rest = dict.fromkeys(seconds, "")
    of = {"table": table, "seed": seed, "fitted": model}
    return [of | row | (rest if n else seconds) for n, row in enumerate(report(exam, answers))]


def answer(density: JointDensity, questions: list[Question]) -> np.ndarray:
    """Answer each question by a density; conditions impossible under it are ignored."""
    return np.array([_answer(density, question) for question in questions])


def report(exam: Exam, answers: np.ndarray) -> list[Row]:
    """Return mean absolute errors of all questions, then for each form of event."""
    forms = np.array([question.form for question in exam.questions])
    groups = {"all": np.ones(len(forms), dtype=bool)} | {form: forms == form for form in FORMS if form in forms}
    return [{"event": name} | _errors(exam, answers, chosen) for name, chosen in groups.items()]


def worst(exam: Exam, answers: np.ndarray, n: int = N_WORST) -> list[Row]:
    """Return the questions with the largest errors of the model, with all answers."""
    order = np.argsort(-np.abs(answers - exam.truth.shares))[:n]
    return [
        {
            "question": str(exam.questions[i]),
            "model": f"{answers[i]:.3f}",
            "counting": f"{exam.counted.shares[i]:.3f}",
            "ignoring": f"{exam.ignoring[i]:.3f}",
            "held-out": f"{exam.truth.shares[i]:.3f}",
            "rows held out": int(exam.truth.n_rows[i]),
            "training rows": int(exam.counted.n_rows[i]),
        }
        for i in order
    ]


def _answer(density: JointDensity, question: Question) -> float:
    """Return P(event and given) / P(given), which needs no conditional density."""
    given = density.probability(question.given)
    if given == 0:
        return density.probability(question.event)
    return density.probability(question.event | question.given) / given


def _errors(exam: Exam, answers: np.ndarray, chosen: np.ndarray) -> Row:
    truth = exam.truth.shares[chosen]
    model, counting, ignoring = (
        float(np.abs(each[chosen] - truth).mean()) for each in (answers, exam.counted.shares, exam.ignoring)
    )
    return {
        "questions": int(chosen.sum()),
        "model": f"{model:.4f}",
        "counting": f"{counting:.4f}",
        "ignoring": f"{ignoring:.4f}",
        "noise": f"{float(exam.noise[chosen].mean()):.4f}",
        "model / counting": model / counting if counting else np.inf,
        "held-out 0 or 1": int(((truth == 0) | (truth == 1)).sum()),
    }
