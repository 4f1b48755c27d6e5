"""A page in headless Chromium, driven over its debugging pipe: no driver, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")


def find():
    """Return the browser's path, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page; a context manager."""

    def __init__(self, url, width=1120, height=860):
        self._size, self._url, self._number = (width, height), url, 0
        self._folder = tempfile.mkdtemp()

    def __enter__(self):
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def prepare():  # the browser reads commands from descriptor 3 and writes answers to 4
            reading, writing = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
                     f"--user-data-dir={self._folder}", "--no-first-run", "--disable-extensions"]  # fmt: skip
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([find(), *arguments], preexec_fn=prepare, close_fds=False, **quiet)
        os.close(theirs_in)
        os.close(theirs_out)
        self._held = b""
        target = self.send("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        attached = self.send("Target.attachToTarget", {"targetId": target, "flatten": True}, session=None)
        self._session = attached["sessionId"]
        width, height = self._size
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", size)
        self.send("Page.navigate", {"url": self._url})
        self.until("document.readyState === 'complete'")
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(20)
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._folder, ignore_errors=True)

    def send(self, method, parameters=None, session=""):
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]

    def _read(self):
        while b"\0" not in self._held:
            part = os.read(self._in, 1 << 16)
            if not part:
                raise RuntimeError("the browser has gone")
            self._held += part
        first, _, self._held = self._held.partition(b"\0")
        return json.loads(first)

    def run(self, script):
        """Return the value of a JavaScript expression."""
        options = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = self.send("Runtime.evaluate", options)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def until(self, script, seconds=120.0):
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.05)

    def picture(self):
        """Return the page as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", {"format": "png"})["data"])
