"""A real Chromium, driven over its debugging pipe (the DevTools protocol), and axe-core's rules for accessible pages."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.support.wait import wait_until

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)
NAMED = frozenset(
    {"button", "link", "textbox", "searchbox", "combobox", "image", "table", "region", "navigation", "heading", "dialog"}
)
_HEADLESS = """[...document.querySelectorAll('table')].filter(table => !table.closest('[aria-hidden]'))
    .filter(table => !table.querySelector('thead th[scope=col]') || !!table.querySelector('tbody tr:not(:has(th[scope=row]))'))
    .length"""
_READY = "!!document.querySelector('h1') && !document.querySelector('.loading')"


def find_chromium() -> str:
    """The program that LAVA_CHROMIUM names, or one in PATH; "" where there is none."""
    named = os.environ.get("LAVA_CHROMIUM", "")
    return named or next((found for name in NAMES if (found := shutil.which(name))), "")


def find_axe() -> Path | None:
    """axe-core's script, which a package for another driver brings; None where that is not installed."""
    found = importlib.util.find_spec("axe_playwright_python")
    return Path(found.origin).with_name("axe.min.js") if found is not None and found.origin else None


class Chromium:
    """One window, with a tab; use it in a ``with``."""

    def __init__(self, program: str, profile: Path) -> None:
        self._program = program
        self._profile = profile
        self._next = 0
        self._buffer = b""
        self._session = ""
        self._tabs: dict[str, str] = {}
        """Of each tab its session of the debugging protocol."""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # Chromium takes descriptors 3 and 4
        script = f'exec 3<&{to_read} 4>&{to_write}; exec "$@"'
        self._profile.mkdir(parents=True, exist_ok=True)
        words = ["bash", "-c", script, "bash", self._program, *OPTIONS, f"--user-data-dir={self._profile}", "about:blank"]
        with (self._profile / "stderr").open("wb") as log:
            self._process = subprocess.Popen(
                words, pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        os.close(to_read)
        os.close(to_write)
        self.add_tab()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = ""
            self._send("Browser.close")
        except (OSError, EOFError):
            pass
        os.close(self._write)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def _send(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        message = {"id": self._next, "method": method, "params": params} | ({"sessionId": self._session} if self._session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._next:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], 120)[0], "Chromium does not answer"
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise EOFError((self._profile / "stderr").read_text(errors="replace")[-2000:])
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def add_tab(self) -> str:
        """Another tab before the others, in which is done what follows; its name."""
        self._session = ""
        target = str(self._send("Target.createTarget", url="about:blank")["targetId"])
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._tabs[target] = self._session
        for domain in ("Page", "Runtime", "Log"):
            self._send(f"{domain}.enable")
        return target

    def show_tab(self, target: str) -> None:
        """Put it before the others; what follows is done in it."""
        self._session = ""
        self._send("Target.activateTarget", targetId=target)
        self._session = self._tabs[target]
        self.wait("!document.hidden")

    def js(self, code: str) -> Any:
        """The value of an expression, awaited."""
        answer = self._send("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, (code[:200], answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, code: str) -> None:
        """Until an expression is true."""
        wait_until(lambda: bool(self.js(code)), 60, lambda: f"{code}: {self.js('document.body.innerText')[:1500]}")

    def open(self, address: str) -> None:
        """Go there, until the page has its content."""
        self._send("Page.navigate", url=address)
        self.wait(_READY)

    def go(self, place: str) -> None:
        """To another page of the page."""
        self.js(f"location.hash = {json.dumps(place)}")
        self.wait(f"location.hash.startsWith({json.dumps(place)}) && {_READY}")

    def shape(self, width: int, height: int, mobile: bool = False, dark: bool = False) -> None:
        """The window, and what its user likes."""
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self._send(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        )

    def press(self, key: str) -> None:
        """A key of the keyboard."""
        code = {"Tab": 9, "Enter": 13}[key]
        more = {"text": "\r"} if key == "Enter" else {}
        self._send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **more)
        self._send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        """Where the focus is."""
        self._send("Input.insertText", text=text)

    def violations(self, axe: Path) -> list[str]:
        """What axe finds wrong with the page as it is."""
        if not self.js("!!window.axe"):
            self.js(axe.read_text() + "; 0")
        nodes = "v.nodes.slice(0, 3).map(n => n.html.slice(0, 200)).join(' ')"
        found: list[str] = self.js(f"axe.run().then(r => r.violations.map(v => v.id + ': ' + {nodes}))")
        return found

    def nameless(self) -> list[str]:
        """What a screen reader comes to and cannot name, by role; tables without heads of columns or of a row."""
        nodes = self._send("Accessibility.getFullAXTree")["nodes"]
        found = [
            role
            for node in nodes
            if not node["ignored"] and (role := node["role"]["value"]) in NAMED and not node["name"]["value"].strip()
        ]
        return found + ["rows"] * self.js(_HEADLESS)

    def is_too_wide(self) -> bool:
        """Whether the whole page has to be scrolled sideways."""
        return bool(self.js("document.documentElement.scrollWidth > innerWidth + 1"))

    def exceptions(self) -> list[str]:
        """What scripts raised and did not catch, and what the content security policy refused."""
        self.js("0")
        thrown = [event for event in self.events if event.get("method") == "Runtime.exceptionThrown"]
        refused = [
            event
            for event in self.events
            if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["source"] == "security"
        ]
        return [json.dumps(event["params"])[:600] for event in thrown + refused]

    def picture(self, path: Path) -> None:
        """What is seen now, as PNG or, by its name, as WebP."""
        form = {"format": "webp", "quality": 80} if path.suffix == ".webp" else {"format": "png"}
        path.write_bytes(base64.b64decode(self._send("Page.captureScreenshot", **form)["data"]))

    def settle(self) -> None:
        """Until the page has shown what it was given."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
