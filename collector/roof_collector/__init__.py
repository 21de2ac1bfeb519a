"""The collector: stores what agents measure, counts networks, fits rooflines, shows both."""
