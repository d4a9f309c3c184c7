"""Many cases on many processes or machines: what a sweep tries, how it is spread, what is kept and compared.

``settings`` and ``cases`` say what is tried; ``engine`` spreads tasks of JSON bytes over the workers of a Dask cluster,
``worker`` runs each in a child process; ``results`` keeps a row of each case, ``summary``, ``fronts`` and
``comparison`` say what the rows tell.
"""
