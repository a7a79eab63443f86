"""Pictures of the page for README and docs: `make pictures`."""

import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from tests.explore.browser import browser, open_page
from tests.explore.tables import customers, wines

from jointwise import JointEstimator
from jointwise.explore import write_page

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
# By name: the page, its state, whether it is dark, and its width and height.
PICTURES = {
    "explore-wine": ("wine", "a=13s0", False, 1360, 800),
    "explore-shop": ("shop", "a=0s0_6s1", False, 1360, 860),
    "explore-compare": ("shop", "a=0s0&b=0s2&on=b&pair=1.3", True, 1360, 960),
    "explore-ask": ("wine", "a=0r13~&sort=ask&of=13", False, 1360, 760),
}


def main() -> None:
    """Fit both tables, and write a picture of each state."""
    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        fits = {
            "wine": (wines(), "ignorable", "178 wines of three cultivars"),
            "shop": (customers(), "informative", "Customers of a shop"),
        }
        pages = {}
        for name, (table, missing, title) in fits.items():
            density = JointEstimator(missing=missing, random_state=0).fit(table).density_
            pages[name] = write_page(density, Path(folder) / f"{name}.html", title=title)
        for name, (page, state, dark, width, height) in PICTURES.items():
            with browser(width, height + 143, dark=dark) as driver:  # the window has a head of its own
                open_page(driver, pages[page], state)
                driver.save_screenshot(f"{folder}/{name}.png")
            # 256 colours are enough for what is drawn, and a quarter of the bytes
            Image.open(f"{folder}/{name}.png").convert("RGB").quantize(256).save(FOLDER / f"{name}.png", optimize=True)
            print(FOLDER / f"{name}.png", file=sys.stderr)


if __name__ == "__main__":
    main()
