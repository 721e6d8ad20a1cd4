"""What the page does while the cluster changes: in many tabs, with the master away, at addresses that somebody has typed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.browser.chromium import Chromium, find_chromium
from tests.support.live.cluster import Cluster

LONG = "x" * 4000
LIVE = "document.querySelector('.live').textContent"
ROWS = "[...document.querySelectorAll('tbody tr th')].map(one => one.textContent).join(' ')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Chromium, Cluster]]:
    program = find_chromium()
    if not program:
        assert not os.environ.get("LAVA_CHROMIUM_NEEDED"), "apt-get install chromium, or name one in LAVA_CHROMIUM"
        pytest.skip("no Chromium is in PATH, and LAVA_CHROMIUM names none")
    folder = tmp_path_factory.mktemp("live")
    with Cluster(folder / "c", hosts=1, slots=2, options=("--web",)) as cluster:
        cluster.submit(f"-H -J {LONG} true")
        cluster.submit("-J short sleep 1000")
        with Chromium(program, folder / "profile") as chromium:
            chromium.shape(1280, 900)
            chromium.open((cluster.folder.run / "web.url").read_text().strip())
            yield chromium, cluster


def test_many_tabs_are_live_though_a_browser_opens_few_connections(browser: tuple[Chromium, Cluster]) -> None:
    chromium, cluster = browser
    address = chromium.js("location.origin") + "/#/jobs"
    tabs = [chromium.add_tab() for _ in range(8)]
    for tab in tabs:
        chromium.show_tab(tab)
        chromium.open(address)
        chromium.wait(f"{LIVE} === 'live'")
    for tab in (tabs[-1], tabs[0]):
        chromium.show_tab(tab)
        job = cluster.submit("-H true")
        chromium.wait(f"({ROWS}).split(' ').includes('{job}')")
        chromium.wait(f"{LIVE} === 'live'")


def test_the_page_says_that_the_master_is_away_and_shows_what_was_missed(browser: tuple[Chromium, Cluster]) -> None:
    chromium, cluster = browser
    # which asks for it once in a minute
    chromium.go("#/chart")
    chromium.wait(f"{LIVE} === 'live'")
    chromium.js(
        "window.asked = []; window.real = fetch; window.fetch = (path, how) => { asked.push(path); return real(path, how); }"
    )
    cluster.kill("lavad")
    chromium.wait(f"{LIVE} === 'not connected'")
    chromium.js("asked.length = 0")
    cluster.up()
    chromium.wait(f"{LIVE} === 'live'")
    chromium.wait("asked.some(path => path.includes('/chart'))")
    chromium.js("window.fetch = real")


def test_an_address_that_was_typed_shows_what_it_says(browser: tuple[Chromium, Cluster]) -> None:
    chromium, _ = browser
    for reload in (False, True):
        chromium.go("#/jobs/%")
        if reload:
            chromium.js("location.reload()")
        chromium.wait("document.querySelector('h1')?.textContent.trim() === 'Job %'")
        chromium.wait("document.querySelector('[role=alert]')?.textContent === '%: Illegal job ID.'")
    state = "document.querySelector('main select').value"
    for place, shown in (("?state=RUN", "RUN"), ("?state=PSUSP", "PSUSP"), ("", "")):
        chromium.js(f"location.hash = '#/jobs{place}'")
        chromium.wait(f"document.querySelector('h1').textContent === 'Jobs ' && {state} === '{shown}'")
        chromium.wait(f"({ROWS}).split(' ').includes('1') === {str(shown != 'RUN').lower()}")
    assert chromium.exceptions() == []


def test_a_long_name_does_not_make_the_page_wide(browser: tuple[Chromium, Cluster]) -> None:
    chromium, _ = browser
    for width in (1280, 360):
        chromium.shape(width, 740, mobile=width < 1000)
        chromium.go("#/jobs/1")
        chromium.wait(f"document.querySelector('h1').textContent.includes('{LONG}')")
        chromium.settle()
        assert not chromium.is_too_wide(), width
    chromium.shape(1280, 900)
