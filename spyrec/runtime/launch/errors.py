"""What a tiled launch refuses; whatever is raised here has enqueued nothing."""

from __future__ import annotations

from spyrec.runtime.errors import RuntimeFault


class TilingNotAllowed(RuntimeFault):
    """The tensors are larger than compiled for, and the launch does not allow tiles."""

    code = "SPY0955"


class TileAmbiguous(RuntimeFault):
    """The shapes do not tell which loops are meant, and no contract names them."""

    code = "SPY0956"


class TileInconsistent(RuntimeFault):
    """Two arguments give one loop different extents."""

    code = "SPY0957"


class OutputOverwritten(RuntimeFault):
    """Iterations of the launch would write the same bytes."""

    code = "SPY0958"


class TileInsideStick(RuntimeFault):
    """A tile would begin inside a stick."""

    code = "SPY0959"


class TileNotExpressible(RuntimeFault):
    """No mode of a tiled launch reaches the tiles of an argument."""

    code = "SPY0960"


class TooManyTiles(RuntimeFault):
    """A launch would have more iterations than its limit."""

    code = "SPY0961"


class RemainderNotPossible(RuntimeFault):
    """A dim is no whole number of tiles, and no policy for what is left over applies."""

    code = "SPY0962"
