"""How often properties are tried: ``--hypothesis-profile tenfold`` tries fresh examples, ten times as many."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("tenfold", max_examples=1000)
