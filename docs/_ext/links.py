"""Check a built site: every link inside it leads to a page and a place that exist, and no page asks another host.

`python docs/_ext/links.py site` prints each broken link and ends with 1 if there is any.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, without a click.
FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """The links of a page, what it fetches, and the places in it that links may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        found = dict(attrs)
        self.places |= {place for key in ("id", "name") if (place := found.get(key))}
        if tag == "a" and (link := found.get("href")):
            self.links.append(link)
        if tag in FETCHED and (address := found.get(FETCHED[tag])) and found.get("rel") != "canonical":
            self.fetched.append(address)


def faults(site: Path) -> list[str]:
    """Return what is wrong with the links of a site."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name}: fetches {link}" for link in page.fetched if link.startswith(("http:", "https:", "//"))]
        for link in page.links + page.fetched:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{name}: no such file: {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{name}: no such place: {link}")
    return found


def main() -> None:
    """Check the site in the folder that the first argument names."""
    found = faults(Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
