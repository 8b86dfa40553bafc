"""A real browser for tests, driven through chromedriver without a further package."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")


class Browser:
    """As much of the WebDriver protocol as these tests need."""

    def __init__(self, profile) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [str(DRIVER), f"--port={self.port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.base = ""
        for _ in range(100):
            try:
                self.call("/status", method="GET")
                break
            except OSError:
                time.sleep(0.05)
        flags = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-sync"
        flags += f" --disable-background-networking --user-data-dir={profile}"
        chrome = {"binary": CHROMIUM, "args": flags.split()}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self.call("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base = f"/session/{session['sessionId']}"

    def call(self, path, body=None, method="POST"):
        content = None if method != "POST" else json.dumps(body or {}).encode()
        address = f"http://127.0.0.1:{self.port}{self.base}{path}"
        request = urllib.request.Request(
            address, content, {"Content-Type": "application/json"}, method=method
        )
        with self.opener.open(request, timeout=30) as answer:
            return json.loads(answer.read())["value"]

    def run(self, script, *values):
        return self.call("/execute/sync", {"script": script, "args": list(values)})

    def text(self, name):
        return self.run("return document.getElementById(arguments[0]).textContent", name)

    def element(self, name):
        found = self.call("/element", {"using": "css selector", "value": f"#{name}"})
        return next(iter(found.values()))

    def click(self, name):
        self.call(f"/element/{self.element(name)}/click")

    def keys(self, name, text):
        self.call(f"/element/{self.element(name)}/value", {"text": text})

    def tools(self, command, **values):
        return self.call("/goog/cdp/execute", {"cmd": command, "params": values})

    def view(self, width, scheme="light"):
        self.tools(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.tools("Emulation.setEmulatedMedia", features=features)

    def open(self, address):
        self.call("/url", {"url": "about:blank"})
        self.call("/url", {"url": address})

    def complaints(self):
        return self.call("/se/log", {"type": "browser"})

    def close(self):
        try:
            self.call("", method="DELETE")
        finally:
            self.process.terminate()
            self.process.wait(10)
