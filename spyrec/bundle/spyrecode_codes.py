"""The codes of a launch artefact's rules, J1 to J11 (``docs/program_image.md``)."""

from __future__ import annotations

MALFORMED_PLAN = "SPY0640"
"""Code of a ``spyrecode.json`` of another form."""

NOT_DECIMAL = "SPY0641"
"""J1: numbers are decimal digits in a string and fit 64 bits."""

OUTSIDE_ALLOCATION = "SPY0642"
"""J2: what a step touches lies in the job's allocation, in the program segment."""

WRONG_FILE_SIZE = "SPY0643"
"""J3: a transfer has the size of its file."""

FILE_OUTSIDE = "SPY0644"
"""J4: a file lies in the artefact's own directory."""

MISALIGNED = "SPY0645"
"""J5: device pointers are multiples of a stick."""

NO_ENTRY = "SPY0646"
"""J6: a program starts at an entry of an image that the preparation copies."""

WRONG_TRANSFER_SIZE = "SPY0647"
"""J7: a transfer has the size of what the host computed, or fits its buffer."""

OVERLAP = "SPY0648"
"""J8: corrections lie apart from code, and apart from each other."""

WRONG_ORDER = "SPY0649"
"""J9: a host computation is transferred and then used; buffers are made once, before their use."""

WRONG_VERSION = "SPY0650"
"""J10: the version is one that is read; keys that are not read are warned of."""

NOT_CORRECTED = "SPY0651"
"""J11: what corrects a program is made and transferred by the same job."""

OTHER_PROGRAM = "SPY0655"
"""An image that is not that of the program beside it."""

WRONG_WORDS = "SPY0657"
"""A host computation whose words are not those of the program that it corrects."""
