"""Networks on the board: weightless graphs, their weights, and how long their layers take."""
