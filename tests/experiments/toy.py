"""An experiment whose tasks log that they ran; as a script, it runs until it is killed or done.

`python toy.py FOLDER LOG N SLEEP JOBS` appends "run KEY" to LOG when a task starts, and prints "done KEY" when its
result is on disk.
"""

import sys
import time
from functools import partial
from pathlib import Path

from jointwise.exceptions import DatasetError
from jointwise.experiments.base import Experiment, Task
from jointwise.experiments.runner import run


class Toy(Experiment):
    name = "toy"
    title = "A toy"

    def __init__(self, log, n=3, sleep=0.0, settings=None):
        self.log, self.n, self.sleep, self.settings = Path(log), n, sleep, settings or {}

    def tasks(self, *, quick):
        n = 1 if quick else self.n
        return [Task(f"task-{i}", partial(self._run, i), {"i": i} | self.settings) for i in range(n)]

    def report(self, results, folder):
        (folder / "toy.svg").write_text("<svg/>")
        return f"Sum of squares: {sum(result['square'] for result in results.values())}\n\n![toy](toy.svg)"

    def _run(self, i):
        with self.log.open("a") as log:
            log.write(f"run task-{i}\n")
        time.sleep(self.sleep)
        return {"square": i * i, "padding": "x" * 200_000 if self.sleep else ""}

    def ran(self):
        return self.log.read_text().split("\n")[:-1] if self.log.exists() else []


class Lost(Toy):
    name = "lost"

    def _run(self, i):
        raise DatasetError("No seeds here.") from OSError("no network")


if __name__ == "__main__":
    folder, log, n, sleep, jobs = sys.argv[1:]
    run(
        [Toy(log, int(n), float(sleep))],
        quick=False,
        folder=Path(folder),
        command="jointwise reproduce toy",
        progress=lambda _done, _total, name: print("done", name.removeprefix("toy: "), flush=True),
        n_jobs=int(jobs),
    )
