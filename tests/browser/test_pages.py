"""The pages in a real Chromium: drawn in light, dark and on a phone, accessible by axe's rules, used with the keyboard.

Where no Chromium is found they are skipped; `make test-web` insists. LAVA_PICTURES names a folder for pictures of all pages.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.support.browser.chromium import Chromium, find_axe, find_chromium
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

PAGES = {
    "cluster": "#/",
    "jobs": "#/jobs",
    "running": "#/jobs/1",
    "waiting": "#/jobs/3",
    "array": "#/jobs/2",
    "submit": "#/submit",
    "queues": "#/queues",
    "queue": "#/queues/normal",
    "hosts": "#/hosts",
    "host": "#/hosts/host1",
    "chart": "#/chart",
    "use": "#/use",
    "health": "#/admin",
    "tokens": "#/tokens",
    "no-such-page": "#/nonsense",
}
SHAPES = {"light": (1280, 900, False, False), "dark": (1280, 900, False, True), "phone": (390, 844, True, False)}


@pytest.fixture(scope="module")
def program() -> str:
    found = find_chromium()
    if not found:
        assert not os.environ.get("LAVA_CHROMIUM_NEEDED"), "apt-get install chromium, or name one in LAVA_CHROMIUM"
        pytest.skip("no Chromium is in PATH, and LAVA_CHROMIUM names none")
    return found


@pytest.fixture(scope="module")
def browser(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Chromium, Cluster]]:
    folder = tmp_path_factory.mktemp("page")
    with Cluster(folder / "c", hosts=1, slots=2, options=("--web", "--gpus", "2")) as cluster:
        cluster.submit("-n 2 -W 30 -gpu num=1 -J talks 'while :; do echo words; sleep 0.2; done'")
        cluster.submit("-J 'sweep[1-300]' sleep 1000")
        cluster.submit("-J huge -n 100 true")
        wait_until(lambda: cluster.states(1) == ["RUN"], 60, "the first job to run")
        with Chromium(program, folder / "profile") as chromium:
            chromium.shape(*SHAPES["light"])
            chromium.open((cluster.folder.run / "web.url").read_text().strip())
            yield chromium, cluster


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_and_accessible(browser: tuple[Chromium, Cluster], name: str) -> None:
    chromium, _ = browser
    axe = find_axe()
    if axe is None:
        assert not os.environ.get("LAVA_CHROMIUM_NEEDED"), "pip install --no-deps axe-playwright-python"
        pytest.skip("axe is not installed: make test-web")
    for shape, how in SHAPES.items():
        chromium.shape(*how)
        chromium.go(PAGES[name])
        chromium.settle()
        if pictures := os.environ.get("LAVA_PICTURES"):
            chromium.picture(Path(pictures, f"{name}-{shape}.png"))
        assert chromium.violations(axe) == [], (name, shape)
        assert shape != "light" or chromium.nameless() == [], name
        assert not chromium.is_too_wide(), (name, shape)
        assert chromium.js("document.querySelectorAll('[role=alert]').length") == 0
        assert chromium.js("document.querySelector('main').firstElementChild.tagName") == "H1"
        assert chromium.js("[...document.querySelectorAll('select')].every(one => one.selectedIndex >= 0)")
    assert chromium.exceptions() == []


def test_an_address_without_a_page_says_so_and_leads_to_the_first(browser: tuple[Chromium, Cluster]) -> None:
    chromium, _ = browser
    chromium.go("#/nonsense/x")
    assert chromium.js("document.querySelector('main').textContent").startswith("No such page There is no page #/nonsense/x.")
    assert chromium.js("document.querySelectorAll('nav a[aria-current]').length") == 0
    chromium.js("document.querySelector('main a').click()")
    chromium.wait("document.querySelector('h1').textContent !== 'No such page '")
    assert chromium.js("document.querySelector('nav a[aria-current]').textContent") == "Cluster"


def test_what_a_job_writes_appears_while_it_runs(browser: tuple[Chromium, Cluster]) -> None:
    chromium, _ = browser
    chromium.go(PAGES["running"])
    chromium.wait("document.querySelector('pre[aria-label=Output]').textContent.includes('words')")
    chromium.wait("document.querySelectorAll('.uplot').length >= 2")


def test_a_job_is_killed_by_the_keyboard_alone(browser: tuple[Chromium, Cluster]) -> None:
    chromium, cluster = browser
    job = cluster.submit("-H -J victim true")
    chromium.go("#/jobs")
    chromium.go(f"#/jobs/{job}")
    chromium.js("document.querySelector('h1').focus()")
    for _ in range(20):
        if chromium.js("document.activeElement.textContent") == "Kill":
            break
        chromium.press("Tab")
    chromium.press("Enter")
    chromium.wait("!!document.querySelector('dialog[open]')")
    chromium.press("Tab")
    chromium.wait("document.activeElement.textContent === 'Kill'")
    chromium.press("Enter")
    chromium.wait("!!document.querySelector('main .state.EXIT')")
    assert cluster.states(job) == ["EXIT"]


def test_a_new_job_appears_without_a_reload(browser: tuple[Chromium, Cluster]) -> None:
    chromium, cluster = browser
    chromium.go("#/jobs")
    job = cluster.submit("-H -J fresh true")
    chromium.wait(f"[...document.querySelectorAll('tbody a')].some(a => a.textContent === '{job}')")


def test_what_a_job_has_written_is_shown_once_after_the_page_was_lost(browser: tuple[Chromium, Cluster]) -> None:
    chromium, cluster = browser
    cluster.run("bkill 0")
    more = cluster.folder.path / "more"
    job = cluster.submit(f"'echo once; until [ -e {more} ]; do sleep 0.1; done; echo more; sleep 1000'")
    text = "document.querySelector('pre[aria-label=Output]')?.textContent"
    chromium.go(f"#/jobs/{job}")
    chromium.wait(f"{text} === 'once\\n'")
    cluster.kill("web")
    cluster.up()
    more.touch()
    chromium.wait(f"{text}?.includes('more')")
    assert chromium.js(text) == "once\nmore\n"


def test_a_token_is_made_shown_once_and_called_back(browser: tuple[Chromium, Cluster]) -> None:
    chromium, cluster = browser
    chromium.go("#/tokens")
    chromium.js("document.querySelector('main form .grow input').focus()")
    chromium.type("laptop")
    chromium.press("Enter")
    chromium.wait("!!document.querySelector('[role=status] pre')")
    token = chromium.js("document.querySelector('[role=status] pre').textContent")
    url = (cluster.folder.run / "web.url").read_text().partition("/login")[0]
    bearer = {"Authorization": f"Bearer {token}"}
    with urlopen(Request(f"{url}/api/v1/session", headers=bearer)) as answer:
        assert json.load(answer)["user"] == getpass.getuser()
    row = "[...document.querySelectorAll('tbody tr')].find(row => row.textContent.includes('laptop'))"
    chromium.go("#/jobs")
    chromium.go("#/tokens")
    chromium.wait(f"!!{row}")
    assert token not in chromium.js("document.body.textContent")
    assert "not known" not in chromium.js(f"{row}.textContent")
    assert "laptop" in cluster.run("lava token --list").stdout
    chromium.js(f"{row}.querySelector('button').focus()")
    chromium.press("Enter")
    chromium.wait("!!document.querySelector('dialog[open]')")
    assert (axe := find_axe()) is None or chromium.violations(axe) == []
    chromium.js("document.querySelector('dialog[open] button').click()")
    chromium.wait(f"!{row}")
    with pytest.raises(HTTPError, match="401"):
        urlopen(Request(f"{url}/api/v1/queues", headers=bearer))
    assert chromium.exceptions() == []


def test_what_one_user_asks_for_is_not_done_as_another_who_has_signed_in_since(browser: tuple[Chromium, Cluster]) -> None:
    chromium, cluster = browser
    chromium.go("#/tokens")
    page = "import('/static/lib.js').then(async ({ ask, session }) => { %s })"
    make = "await ask('/tokens', 'POST', { name: '%s', hours: 1 }).then(() => 'made', (error) => error.message)"
    chromium.js(page % f"session.csrf = 'former'; window.same = {make % 'same'};")
    chromium.wait("window.same === 'made'")
    chromium.js(page % f"session.csrf = 'former'; session.user = 'former'; window.other = {make % 'other'};")
    chromium.wait("window.other !== undefined")
    assert chromium.js("window.other") == f"{getpass.getuser()} is signed in now: load the page again"
    chromium.js(page % f"session.user = '{getpass.getuser()}';")
    made = cluster.run("lava token --list").stdout
    assert ("same" in made, "other" in made) == (True, False)


def test_use_over_time_is_drawn_as_curves(browser: tuple[Chromium, Cluster]) -> None:
    chromium, cluster = browser
    cluster.run("bkill 1", ok=False)  # unless a test before has killed it
    cluster.wait_for(1, "EXIT")
    chromium.go("#/use")
    chromium.wait("document.querySelectorAll('.uplot').length === 1")
    assert "Slot hours of jobs that ended, over 7 days, of" in chromium.js("document.querySelector('[role=img]').ariaLabel")
    assert (axe := find_axe()) is None or chromium.violations(axe) == []
    assert not chromium.is_too_wide()
    assert chromium.exceptions() == []
