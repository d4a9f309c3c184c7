"""What a program of SuperDSCs does: the definition, page by page, each to be read from top to bottom.

This is an interpreter, plain and slow.  What it leaves in memory is what the device leaves there, bit for bit, and the
compiled path of the emulator has to equal it (``tests/properties/test_reference.py``).  It takes nothing from that
path; what each operation computes on its elements stands in its record (``spyrec/device_ops``).

``program``: begin here.  The program ``bundle.mlir``: numbers, addresses, loops, and the SuperDSCs that it executes one
after the other.  One with several DSCs is as many operations (``bundle/dsc_actions``).
``memory``: regions of bytes, in sticks of 128; and how a number is stored in each format.
``operands``: at which byte each element of an operand lies; ``windows``: what a sliding window takes of one.
``execution``: what one core loads and stores, and which cores share a result.
``operations``: what is computed of the elements that were loaded, and rounded; ``folds``: where many become one.
``moves``: what a data DSC moves.

It is defined for programs that obey the rules checked at load (V1 to V14): nothing here looks for mistakes but what
only data shows, the row of a gather.  ``docs/decisions.md`` says why a rule is as it is.
"""
