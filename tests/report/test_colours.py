"""Colours of the page: told apart by all, amounts by their lightness alone; and nothing moves unasked."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import spyrec.report.page

SOURCES = Path(spyrec.report.page.__file__).parent / "assets" / "src"
Colour = npt.NDArray[np.float64]

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def colours(file: str, name: str) -> list[str]:
    """The colours of a list in a module."""
    found = re.search(rf"const {name} = \[(.*?)\];", (SOURCES / file).read_text())
    assert found is not None
    return re.findall(r"#[0-9a-f]{6}", found[1])


def seen(colour: str, blindness: str) -> Colour:
    """A colour as it is seen, in OKLab: lightness first."""
    encoded = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    red, green, blue = np.clip(BLINDNESS[blindness] @ linear, 0, 1)
    long = np.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    middle = np.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = np.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return np.array(
        [
            0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
            1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
            0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
        ]
    )


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_kinds_are_told_apart(blindness: str) -> None:
    kinds = colours("colours.js", "KIND_COLOURS")
    assert len(kinds) == 8
    nearest = min(
        (float(np.linalg.norm(seen(one, blindness) - seen(other, blindness))), one, other)
        for one, other in combinations(kinds, 2)
    )
    assert nearest[0] > 0.05, nearest  # a just noticeable difference is about 0.02


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_errors_beyond_the_bound_darken_step_by_step(blindness: str) -> None:
    steps = [seen(item, blindness)[0] for item in colours("view_correctness.js", "BEYOND")]
    assert len(steps) == 3
    assert all(one - other > 0.1 for one, other in pairwise(steps))


def test_nothing_moves_where_that_is_not_wanted() -> None:
    css = (SOURCES / "page.css").read_text()
    wanted = re.search(r"@media \(prefers-reduced-motion: no-preference\) \{.*?\n\}", css, re.DOTALL)
    assert wanted is not None
    assert "transition" in wanted[0]
    assert not re.search(r"transition|animation|scroll-behavior", css.replace(wanted[0], ""))
    scripts = "".join(file.read_text() for file in sorted(SOURCES.glob("*.js")))
    assert not re.search(r"\.animate\(|behavior: .smooth", scripts)
