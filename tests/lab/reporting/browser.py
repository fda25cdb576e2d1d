"""Controls headless Chromium by the DevTools protocol over a pipe, to test what a page logs, requests and does."""

import itertools
import json
import os
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60  # seconds of silence after which a test fails, so that it never hangs


def program() -> str | None:
    """Returns the path of Chromium on this machine, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A tab of a browser.

    `asked` lists the addresses requested since `open`. `said` lists the lines of the console, including errors.
    """

    def __init__(self, path: str, profile: Path):
        ours, theirs = os.pipe(), os.pipe()  # the browser reads the first and writes to the second
        options = [
            "--headless",
            "--hide-scrollbars",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ]
        # The browser uses the file descriptors 3 and 4 for the protocol, so ours are redirected to them.
        shell = f'exec "$0" "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, path, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            pass_fds=(ours[0], theirs[1]),
            stderr=subprocess.DEVNULL,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self.out, self.into = os.fdopen(ours[1], "wb"), os.fdopen(theirs[0], "rb")
        self.numbers, self.session, self.events, self.rest = itertools.count(1), None, [], b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result. Events received before it are kept."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        self.out.write(json.dumps(message | ({"sessionId": self.session} if self.session else {})).encode() + b"\0")
        self.out.flush()
        while (found := self._next()).get("id") != number:
            self.events.append(found)
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']}")
        return found["result"]

    def open(self, page: Path, width: int = 1200, dark: bool = False, scripts: bool = True) -> None:
        """Opens a file and waits until it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """Evaluates a JavaScript expression in the page and returns its awaited value."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description"))
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Presses and releases a key at the element that has the focus."""
        codes = {"ArrowRight": 39, "ArrowLeft": 37, "Tab": 9, "Home": 36, "End": 35}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def picture(self) -> bytes:
        """Returns the whole page as PNG."""
        return b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def paper(self) -> bytes:
        """Returns the page as PDF on A4 paper."""
        size = {"paperWidth": 8.27, "paperHeight": 11.69}
        return b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False, **size)["data"])

    @property
    def asked(self) -> list[str]:
        """Returns the requested addresses, including those that the content security policy of the page blocked."""
        wanted = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in wanted]

    @property
    def said(self) -> list[str]:
        """Returns the lines written to the console and the exceptions thrown."""
        lines = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Log.entryAdded":
                lines.append(parameters["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled":
                lines.append(" ".join(str(argument.get("value")) for argument in parameters["args"]))
            elif event.get("method") == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                lines.append(details.get("exception", {}).get("description", details["text"]))
        return lines

    def close(self) -> None:
        """Ends the browser."""
        self.process.kill()
        self.process.wait()
        self.out.close()
        self.into.close()

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            if not select([self.into], [], [], PATIENCE)[0]:
                raise RuntimeError(f"the browser says nothing for {PATIENCE} seconds")
            more = os.read(self.into.fileno(), 1 << 20)
            if not more:
                raise RuntimeError("the browser ended")
            self.rest += more
        found, self.rest = self.rest.split(b"\0", 1)
        return json.loads(found)
