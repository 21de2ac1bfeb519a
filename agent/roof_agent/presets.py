"""How long a run measures: by name, shortest first."""

QUICK, DEFAULT, RIGOROUS = PRESETS = ("quick", "default", "rigorous")
