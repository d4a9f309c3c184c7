"""Five views beside the pictures of docs/report.md.  What looks different is printed and fails nothing: a person looks."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from tests.report.browser.conftest import ROOT, Pages
from tests.support.browsing import HEIGHT, WIDTH, Page

PICTURES = ROOT / "docs" / "report"
UPDATE = "SPYREC_UPDATE_PICTURES"
VIEWS = {
    "provenance": "view=provenance&op=6",
    "graph": "view=graph&op=6",
    "memory": "view=memory",
    "time": "view=time&core=7&at=30",
    "correctness": "view=correctness&cell=10,14",
}
THRESHOLD = 2.0
"""Of a distance that is 0 for the same picture and 100 for black beside white; another version of a font makes about 1."""

_COLOURS = 255
_CELL = 8


@pytest.mark.parametrize("name", VIEWS)
def test_views_look_as_in_the_documentation(
    name: str, page: Page, pages: Pages, capsys: pytest.CaptureFixture[str]
) -> None:
    if page.driver.name != "chrome":
        pytest.skip("the pictures are Chromium's")
    page.size(WIDTH, HEIGHT)
    page.open(pages.granite, VIEWS[name])
    page.script("document.activeElement.blur()")
    page.settled()
    page.settled()
    shot = Image.open(BytesIO(page.driver.get_screenshot_as_png())).convert("RGB")
    file = PICTURES / f"{name}.png"
    if os.environ.get(UPDATE):
        save(shot, file)
    distance = perceptual_distance(shot, Image.open(file).convert("RGB"))
    if distance > THRESHOLD:
        with capsys.disabled():
            print(
                f"\n  {name}: {distance:.1f} from {file.relative_to(ROOT)} (more than {THRESHOLD}); {UPDATE}=1 writes it anew"
            )
    assert shot.size == (WIDTH, HEIGHT)


def save(shot: Image.Image, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    shot.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(file, optimize=True)


def perceptual_distance(one: Image.Image, other: Image.Image) -> float:
    """Return how far two pictures look apart: root mean square of lightness and colour over cells of 8 pixels, 0 to 100."""
    return float(np.sqrt(np.mean((_seen(one) - _seen(other)) ** 2))) * 100 / 255 if one.size == other.size else 100.0


def _seen(picture: Image.Image) -> npt.NDArray[np.float64]:
    cells = picture.convert("YCbCr").resize((picture.width // _CELL, picture.height // _CELL), Image.Resampling.BOX)
    return np.asarray(cells, np.float64)
