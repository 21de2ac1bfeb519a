"""What an analysis gives: totals and layers, and the JSON document of both."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from roof_agent.errors import UsageError
from roof_collector.analysis.symbols import Poly

SCHEMA = 1


@dataclass(slots=True)
class Counts:
    """The two views of a layer or of a whole network: operations and bytes.

    Each is an exact integer. Where the graph leaves dims open it is a polynomial in them
    (`symbols.Poly`, which does the same arithmetic); `Analysis.symbols` tells, and
    `Analysis.require_numbers` refuses.
    """

    params: int
    macc: int
    other_ops: int
    input_bytes: int
    param_bytes: int
    output_bytes: int

    @property
    def flops(self) -> int:
        """2*macc + other_ops: operations, never a rate."""
        return 2 * self.macc + self.other_ops

    @property
    def memory_bytes(self) -> int:
        """Bytes read and written, with every cache ignored."""
        return self.input_bytes + self.param_bytes + self.output_bytes

    @property
    def intensity(self) -> float | None:
        """FLOP/byte; None where no bytes move, or where the counts are still polynomials."""
        flops, moved = self.flops, self.memory_bytes
        if isinstance(flops, Poly) or isinstance(moved, Poly) or not moved:
            return None
        return flops / moved

    def counts_json(self) -> dict[str, Any]:
        """Return the counts under the documented keys."""
        return {
            "params": _plain(self.params),
            "macc": _plain(self.macc),
            "flops": _plain(self.flops),
            "other_ops": _plain(self.other_ops),
            "input_bytes": _plain(self.input_bytes),
            "param_bytes": _plain(self.param_bytes),
            "output_bytes": _plain(self.output_bytes),
            "memory_bytes": _plain(self.memory_bytes),
            "intensity": self.intensity,
        }


@dataclass(slots=True)
class BranchCounts(Counts):
    """One branch of an If or the body of a loop, counted once (params: all that it holds)."""

    name: str


TensorShape = tuple[str, tuple[int | str, ...] | None]


@dataclass(slots=True)
class Layer(Counts):
    """One node. `index` is its place in the graph's node list; `name` is as written, maybe empty.

    The nodes of an inlined function stand at the index of the node that called it. `fused` names
    the nodes whose work this one does under the preset, `rewrites` says by which rewrite. `note` is
    what the count rests on (worst branch, trip count); `uncounted` says why a count is missing.
    `inputs` and `outputs` are (element type, dims), dims None where even the rank is unknown.
    """

    index: int
    name: str
    op_type: str
    domain: str
    layer_class: str
    inputs: tuple[TensorShape, ...]
    outputs: tuple[TensorShape, ...]
    fused: tuple[str, ...] = ()
    rewrites: tuple[str, ...] = ()
    note: str = ""
    uncounted: str = ""
    branches: tuple[BranchCounts, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the layer as `analyze --json` prints it."""
        document: dict[str, Any] = {
            "index": self.index,
            "name": self.name,
            "op_type": self.op_type,
            "class": self.layer_class,
            **self.counts_json(),
            "inputs": [_shape_json(shape) for shape in self.inputs],
            "outputs": [_shape_json(shape) for shape in self.outputs],
            "fused": list(self.fused),
            "rewrites": list(self.rewrites),
            "uncounted": self.uncounted or None,
        }
        if self.note:
            document["note"] = self.note
        if self.branches:
            document["branches"] = [{"name": each.name, **each.counts_json()} for each in self.branches]
        return document


@dataclass(slots=True)
class Totals(Counts):
    """The whole network; `params` counts a shared constant once, so it may be less than the layers' sum.

    `peak_activation_bytes` is the most that live activations take in the order of execution;
    `peak_activation_inplace_bytes` the same with depthwise layers computed in place, one channel of
    extra memory each (MCUNet's TinyEngine, Lin et al., NeurIPS 2020).
    """

    layers: int
    uncounted: int
    peak_activation_bytes: int
    peak_activation_inplace_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return the totals as `analyze --json` prints them."""
        return {
            **self.counts_json(),
            "layers": self.layers,
            "uncounted": self.uncounted,
            "peak_activation_bytes": _plain(self.peak_activation_bytes),
            "peak_activation_inplace_bytes": _plain(self.peak_activation_inplace_bytes),
        }


@dataclass(frozen=True)
class ModelInfo:
    """What was counted, and how."""

    name: str
    producer: str
    opsets: dict[str, int]
    nodes: int
    fusion: str
    residual_read: bool
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    """A counted network."""

    model: ModelInfo
    totals: Totals
    layers: tuple[Layer, ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        """The dims that are still open; () where every count is a number."""
        return self.model.symbols

    def require_numbers(self) -> Analysis:
        """Return itself, or UsageError where open dims leave polynomials."""
        if self.symbols:
            raise UsageError(
                f"the dims {', '.join(self.symbols)} are open: bind them with --bind, --shape or --value"
            )
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the document that `analyze --json` prints; a polynomial is its text, as "1920*N"."""
        return {
            "schema": SCHEMA,
            "model": asdict(self.model) | {"symbols": list(self.model.symbols)},
            "totals": self.totals.to_json(),
            "layers": [layer.to_json() for layer in self.layers],
        }


def _plain(value: object) -> int | str:
    return str(value) if isinstance(value, Poly) else int(str(value))


def _shape_json(shape: TensorShape) -> list[Any]:
    dtype, dims = shape
    return [dtype, None if dims is None else list(dims)]
