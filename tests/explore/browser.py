"""Headless Chromium from the system, without a network, driven by selenium."""

import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
)  # fmt: skip
READY = "const r = document.querySelector('#explore'); return !!r?.querySelector('.card') && !('busy' in r.dataset)"


@contextmanager
def browser(width=1360, height=1000, *, dark=False, reduced=False, offline=True):
    """A window of its own that cannot reach any network, unless a server of this machine is wanted."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        try:
            driver.execute_cdp_cmd("Network.enable", {})
            if offline:
                none = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
                driver.execute_cdp_cmd("Network.emulateNetworkConditions", none)
            media = {"prefers-color-scheme": "dark" if dark else "light"}
            media |= {"prefers-reduced-motion": "reduce"} if reduced else {}
            features = [{"name": name, "value": value} for name, value in media.items()]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            yield driver
        finally:
            driver.quit()


def open_page(driver, path, state=""):
    """Open a page from disk, and wait until it is drawn."""
    driver.get("about:blank")
    driver.get(Path(path).as_uri() + (f"#{state}" if state else ""))
    settled(driver)


def settled(driver, seconds=20):
    """Wait until all is computed and drawn."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if driver.execute_script(READY):
            # two frames, so that the last drawing is done
            driver.execute_async_script(
                "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
            )
            if driver.execute_script(READY):
                return
        time.sleep(0.02)
    raise AssertionError(f"the page did not come to rest: {driver.get_log('browser')}")
