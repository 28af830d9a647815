"""How fast the built site opens for a reader with a slow connection; the book shows the table.

    .venv/bin/python -m benchmarks.page_speed            # five runs of each page, two minutes
    .venv/bin/python -m benchmarks.page_speed --keep     # the same, and write book/page_speed.csv

The site must be built. Its server compresses, as `companion site --serve` does. Chromium opens each page with an empty
cache in a window of 1440 by 900 pixels; its developer tools reduce the connection to 1 Mbit/s and 150 ms. A page is
readable when all of it is read, its formulas are set, and none of them is invisible because its font is missing. Text,
which Chromium hides at most a tenth of a second for its font, counts as readable in another face. A page is complete
when nothing more is loaded. Nothing else should run at the same time.
"""

import argparse
import statistics
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from playwright.sync_api import Browser, CDPSession, sync_playwright
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.page import write as write_tables  # noqa: E402
from benchmarks.table import origin, progress  # noqa: E402
from companion.project.paths import DEFAULT_PROFILE, Project  # noqa: E402
from companion.site.pdf import FLAGS, find_browser  # noqa: E402
from companion.site.server import QuietHandler, server  # noqa: E402

PAGES = ("index", "gaussian_limit", "concentration", "finite_samples")
RUNS = 5
CONNECTION = {"offline": False, "latency": 150, "downloadThroughput": 125_000, "uploadThroughput": 125_000}
WINDOW = {"width": 1440, "height": 900}
TABLE, ORIGIN = Path("book/page_speed.csv"), Path("book/page_speed_origin.csv")
# Columns as the book shows them.
PAGE, PAINT, READABLE, COMPLETE, LOADED = "page", "first paint", "readable", "complete", "kilobytes"
# Runs before the page: note each frame in which the page is readable first.
WATCH = """() => {
    const set = node => node.querySelector('.katex, mjx-container');
    const hidden = face => face.status === 'loading' && face.display === 'block';
    const watch = () => {
        const formulas = [...document.querySelectorAll('.math')].every(set);
        const read = document.readyState !== 'loading' && formulas && ![...document.fonts].some(hidden);
        if (read) window.readable ??= performance.now();
        else window.readable = undefined;
        requestAnimationFrame(watch);
    };
    watch();
}"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


@contextmanager
def served(project: Project) -> Iterator[str]:
    """Serve the built site, and yield the address of its pages."""
    with server(project.site(DEFAULT_PROFILE), 0, QuietHandler) as files:
        threading.Thread(target=files.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{files.server_port}/{project.book.name}"
        files.shutdown()


def opened(browser: Browser, address: str) -> dict[str, float]:
    """Open a page with an empty cache; return the times in seconds, and the compressed size of what was loaded."""
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    session: CDPSession = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", CONNECTION)
    sent: list[float] = []
    loaded: list[tuple[float, float]] = []
    session.on("Network.requestWillBeSent", lambda event: sent.append(event["timestamp"]))
    session.on("Network.loadingFinished", lambda event: loaded.append((event["timestamp"], event["encodedDataLength"])))
    page.add_init_script(f"({WATCH})()")
    page.goto(address, wait_until="networkidle", timeout=120_000)
    page.wait_for_function("window.readable !== undefined")
    times = {PAINT: page.evaluate(PAINTED) / 1000, READABLE: page.evaluate("window.readable") / 1000}
    context.close()
    return {**times, COMPLETE: max(end for end, _ in loaded) - sent[0], LOADED: sum(size for _, size in loaded) / 1000}


def measured(addresses: Sequence[str], runs: int) -> pd.DataFrame:
    """Return one row per page with the medians over runs; pages take turns."""
    results: dict[str, list[dict[str, float]]] = {address: [] for address in addresses}
    with sync_playwright() as playwright, progress() as bar:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        for address in bar.track([*addresses] * runs, description="Opening pages"):
            results[address].append(opened(browser, address))
        browser.close()
    rows = []
    for address, each in results.items():
        median = {
            name: statistics.median(result[name] for result in each) for name in (PAINT, READABLE, COMPLETE, LOADED)
        }
        shown = {name: f"{float(f'{value:.2g}'):g}" for name, value in median.items()}
        rows.append({PAGE: Path(address).stem, **shown})
    return pd.DataFrame(rows)


def show(rows: pd.DataFrame) -> None:
    """Print the table."""
    table = Table(*map(str, rows.columns))
    for row in rows.itertuples(index=False):
        table.add_row(*map(str, row))
    Console().print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the pages, print the table and, with `--keep`, write it."""
    parser = argparse.ArgumentParser("python -m benchmarks.page_speed", description="Speed of pages at 1 Mbit/s.")
    parser.add_argument("page", nargs="*", help=f"names of pages (default: {', '.join(PAGES)})")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how often each page is opened (default: {RUNS})")
    parser.add_argument("--keep", action="store_true", help=f"write {TABLE} and {ORIGIN}, and the tables of the page")
    asked = parser.parse_args(arguments)
    with served(Project(ROOT)) as address:
        rows = measured([f"{address}/{name}.html" for name in asked.page or PAGES], asked.runs)
    show(rows)
    if asked.keep:
        rows.to_csv(ROOT / TABLE, index=False)
        pd.DataFrame([origin(ROOT)]).to_csv(ROOT / ORIGIN, index=False)
        write_tables(ROOT)


if __name__ == "__main__":
    main()
