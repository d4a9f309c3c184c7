"""A campaign: random cases of every kind for hours, failures made small, each cause told once.

``kinds`` lists what is tried; ``task`` runs one case on a worker; ``run`` spreads the cases, ``reduction`` makes the
failures small, ``causes`` keeps one folder for each cause, and ``report`` says what came of it.
"""
