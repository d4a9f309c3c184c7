"""Files of measured kernel times, made up."""

from __future__ import annotations

from pathlib import Path

HEAD = "id,family,op,expression,shape,cores,split,tiles,placement,layout,measured_us,scope,flags"


def row(
    op: str, shape: str, *, cores: int = 32, split: str = "", us: float = 10.0, tiles: int = 1, layout: str = ""
) -> str:
    name = f"{op}-{shape}-{cores}-{split}-{tiles}-{layout.replace(',', ';')}"
    return f'{name},{op},{op},x,{shape},{cores},{split},{tiles},,"{layout}",{us},in,'


def rows() -> list[str]:
    found = [
        row(op, f"{size}x{width}")
        for op in ("neg", "add", "bcast")
        for size in (512, 2048, 8192)
        for width in (1024, 4096, 8192)
    ]
    sizes = [(m, k, n) for m in (1024, 2048, 4096) for k in (1024, 2048) for n in (1024, 2048)]
    return [*found, *(row("mm", f"1x{m}x{k}x{n}", split=split) for m, k, n in sizes for split in ("4x8", "8x4"))]


def listed(path: Path, lines: list[str]) -> Path:
    file = path / "measured.csv"
    file.write_text("\n".join([HEAD, *lines]) + "\n", encoding="utf-8")
    return file
