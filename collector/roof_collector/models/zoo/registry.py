"""What the zoo holds: each family's module registers its networks here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Tensor


@dataclass(frozen=True)
class Network:
    """A network that can be built; `input_shape` leaves the batch out."""

    name: str
    help: str
    input_shape: tuple[int, ...]
    layers: Callable[[Graph], Tensor]


NETWORKS: dict[str, Network] = {}

IMAGE = (3, 224, 224)


def register(
    name: str, text: str, layers: Callable[[Graph], Tensor], *, input_shape: tuple[int, ...] = IMAGE
) -> None:
    """Add a network; a name twice is a mistake in the program."""
    if name in NETWORKS:
        raise ValueError(f"the zoo has two networks {name}")
    NETWORKS[name] = Network(name, text, input_shape, layers)
