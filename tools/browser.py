"""The browser of tests, pictures and benchmarks: the system's Chromium, without windows."""

from __future__ import annotations

import shutil

from playwright.sync_api import Browser, Playwright

# the shell has the same pages and scripts as the whole browser, without its own windows behind each of them
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
REMEDY = "apt install chromium-headless-shell"


def find() -> str | None:
    """The path of the browser, where there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def launch(playwright: Playwright) -> Browser:
    """Start the browser."""
    found = find()
    if found is None:
        raise SystemExit(f"no Chromium: {REMEDY}")
    return playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
