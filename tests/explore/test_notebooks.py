"""The widget in real notebooks, JupyterLab and marimo: it draws, follows Python, and Python reads what is clicked.

Neither is among the dependencies: `pip install jupyterlab marimo` beside the group `page`, and these tests run.
"""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from urllib.request import urlopen

import pytest
from tests.explore.browser import CHROMIUM, DRIVER, browser

pytestmark = [
    pytest.mark.page,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium and chromedriver: install Debian's packages"),
    pytest.mark.skipif(find_spec("selenium") is None, reason="selenium is in the dependency group page"),
    pytest.mark.skipif(find_spec("anywidget") is None, reason="anywidget is in the dependency group page"),
]
SHOW = "from tests.explore.cases import people\nw = people().explore()\nw"
MARIMO = """
import marimo

app = marimo.App()


@app.cell
def show():
    import marimo as mo
    from tests.explore.cases import people

    w = mo.ui.anywidget(people().explore())
    w
    return mo, w


@app.cell
def button(mo):
    know = mo.ui.run_button(label="Know")
    know
    return (know,)


@app.cell
def set_evidence(know, w):
    if know.value:
        w.widget.evidence = {"sex": "M"}
    return


@app.cell
def read_evidence(mo, w):
    w.value
    mo.md(f"read: {w.widget.evidence}")
    return


if __name__ == "__main__":
    app.run()
"""


@contextmanager
def server(*words, folder, port, page):
    """A program that serves a page on a port of this machine; ended afterwards."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    paths = os.pathsep.join(path for path in sys.path if path)
    settings = os.environ | {"PYTHONPATH": paths, "JUPYTER_CONFIG_DIR": str(folder), "HOME": str(folder)}
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=folder, env=settings, **quiet)
    try:
        until(lambda: answers(page), "no server", seconds=60)
        yield
    finally:
        process.terminate()
        process.wait(20)


def answers(page):
    try:
        with urlopen(page) as reply:
            return reply.status == 200
    except OSError:
        return False


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def until(holds, words, seconds=40):
    """Wait until something holds, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.1)
    raise AssertionError(words)


# what a selector finds in the page and in the shadow roots into which marimo puts things
FOUND = """
const all = (root) => [root, ...[...root.querySelectorAll("*")].flatMap((e) => e.shadowRoot ? all(e.shadowRoot) : [])];
return all(document).flatMap((root) => [...root.querySelectorAll(arguments[0])]);
"""


def bars(driver):
    """The bars of the column sex."""
    return driver.execute_script(FOUND, '[data-card="4"] .bar')


def shares(driver):
    """The percentages that they show, by category."""
    words = [bar.text.split() for bar in bars(driver)]
    return {each[0]: each[-1] for each in words if each}


def click(driver, element):
    driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", element)
    element.click()


def picture(driver, name):
    if folder := os.environ.get("SCREENSHOTS"):
        driver.save_screenshot(f"{folder}/{name}.png")


@pytest.mark.skipif(find_spec("jupyterlab") is None, reason="jupyterlab is not installed")
def test_jupyterlab(tmp_path):
    sources = [SHOW, 'w.evidence = {"sex": "M"}', 'print("read:", w.evidence)']
    cells = [
        {"cell_type": "code", "id": f"cell{k}", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        for k, text in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "known.ipynb").write_text(json.dumps(notebook))
    port = free_port()
    words = ("jupyterlab", "--no-browser", "--expose-app-in-browser", "--allow-root", f"--port={port}")
    words += ("--IdentityProvider.token=", "--ServerApp.port_retries=0")
    address = f"http://localhost:{port}/lab/tree/known.ipynb"
    with server(*words, folder=tmp_path, port=port, page=address), browser(1500, 1100, offline=False) as driver:
        driver.get(address)
        until(
            lambda: driver.execute_script("return !!window.jupyterapp?.shell?.currentWidget?.content?.widgets"),
            "no lab",
        )

        def run(cell):
            driver.execute_script(
                "const { shell, commands } = window.jupyterapp;"
                "shell.currentWidget.content.activeCellIndex = arguments[0];"
                "commands.execute('notebook:run-cell');",
                cell,
            )

        until(
            lambda: driver.execute_script("return !!jupyterapp.shell.currentWidget.sessionContext.session?.kernel"),
            "no kernel",
        )
        run(0)
        before = until(lambda: shares(driver), "the widget does not draw")
        picture(driver, "jupyterlab-drawn")
        run(1)
        until(lambda: shares(driver) != before, "the cards do not follow Python")
        assert shares(driver) == {"F": "0%", "M": "100%"}
        click(driver, bars(driver)[0])  # F as well, so that nothing is known
        until(lambda: shares(driver) == before, "the cards do not follow the click")
        click(driver, bars(driver)[0])
        until(lambda: shares(driver)["F"] == "100%", "the cards do not follow the click")
        run(2)
        text = "return [...document.querySelectorAll('.jp-OutputArea-output pre')].map((e) => e.textContent).join(' ')"
        until(lambda: "read: {'sex': 'F'}" in driver.execute_script(text), "Python does not read the click")
        picture(driver, "jupyterlab-clicked")


@pytest.mark.skipif(find_spec("marimo") is None, reason="marimo is not installed")
def test_marimo(tmp_path):
    (tmp_path / "known.py").write_text(MARIMO)
    port = free_port()
    words = ("marimo", "run", "known.py", "--headless", "--no-token", f"--port={port}")
    address = f"http://localhost:{port}"
    with server(*words, folder=tmp_path, port=port, page=address), browser(1500, 1300, offline=False) as driver:
        driver.get(address)
        before = until(lambda: shares(driver), "the widget does not draw")
        picture(driver, "marimo-drawn")
        click(driver, next(each for each in driver.execute_script(FOUND, "button") if each.text == "Know"))
        until(lambda: shares(driver) != before, "the cards do not follow Python")
        assert shares(driver) == {"F": "0%", "M": "100%"}
        click(driver, bars(driver)[0])
        until(lambda: shares(driver) == before, "the cards do not follow the click")
        click(driver, bars(driver)[0])
        body = "return document.body.innerText"
        until(lambda: "read: {'sex': 'F'}" in driver.execute_script(body), "Python does not read the click")
        picture(driver, "marimo-clicked")
