"""From measurements to what a device can do: ceilings, rooflines, profiles."""
