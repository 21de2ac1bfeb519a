"""Counting a network: from an ONNX graph to its layers and totals.

The definitions are those of docs/counting.md: macc and other operations, bytes by what each layer
reads and writes, params by distinct constants.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

from onnx import ModelProto

from roof_agent.errors import UsageError
from roof_collector.analysis.engine import Engine
from roof_collector.analysis.fusion import fuse
from roof_collector.analysis.inputs import Inputs
from roof_collector.analysis.node import Branch
from roof_collector.analysis.peak import peak_bytes
from roof_collector.analysis.result import Analysis, BranchCounts, Layer, ModelInfo, TensorShape, Totals
from roof_collector.analysis.row import Row
from roof_collector.analysis.symbols import Dim, Poly
from roof_collector.analysis.tensor import TYPE_NAMES, Root, Shape


def analyze(
    model: ModelProto,
    *,
    bind: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    values: Mapping[str, object] | None = None,
    batch: int | None = None,
    fusion: str = "none",
    residual_read: bool = False,
) -> Analysis:
    """Count a network.

    `bind` sets named dims, `shapes` the dims of whole inputs, `values` those of small inputs that a
    branch or a shape depends on, `batch` the first dim of every input. `fusion` is a preset (none,
    basic, ideal); `residual_read` counts the read of the shortcut under ideal. Dims that stay open
    make the counts exact polynomials in them. Weights need no data. UsageError for a model that
    isn't valid or a name that it doesn't have.
    """
    inputs = Inputs(bind or {}, shapes or {}, values or {}, batch)
    with _uncollected():
        layers, totals, symbols = _counted(model, inputs, fusion, residual_read=residual_read)
    info = ModelInfo(
        name=model.graph.name,
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        opsets={opset.domain or "ai.onnx": opset.version for opset in model.opset_import},
        nodes=len(model.graph.node),
        fusion=fusion,
        residual_read=residual_read,
        symbols=symbols,
    )
    return Analysis(info, totals, layers)


def _counted(
    model: ModelProto, inputs: Inputs, fusion: str, *, residual_read: bool
) -> tuple[tuple[Layer, ...], Totals, tuple[str, ...]]:
    engine = Engine(model, inputs)
    try:
        rows = engine.run()
    except (UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"the model isn't valid: {error}") from error
    fuse(rows, fusion, engine.graph_outputs, residual_read=residual_read)
    symbols = sorted(set().union(*(_open(row) for row in rows)))
    return tuple([_layer(row) for row in rows]), _totals(rows, engine), tuple(symbols)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hold the garbage collector: the walk makes many small objects, all of which live to its end."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def _totals(rows: Sequence[Row], engine: Engine) -> Totals:
    plain, in_place = peak_bytes(rows, engine.graph_inputs, engine.graph_outputs)
    return Totals(
        params=_elements(frozenset[Root]().union(*(row.roots for row in rows))),
        macc=_sum(row.macc for row in rows),
        other_ops=_sum(row.other_ops for row in rows),
        input_bytes=_sum(row.input_bytes for row in rows),
        param_bytes=_sum(row.param_bytes for row in rows),
        output_bytes=_sum(row.output_bytes for row in rows),
        layers=len(rows),
        uncounted=sum(1 for row in rows if row.uncounted),
        peak_activation_bytes=_number(plain),
        peak_activation_inplace_bytes=_number(in_place),
    )


def _layer(row: Row) -> Layer:
    # Typed as numbers in `Counts`, which says why.
    counted: Any = row
    return Layer(
        params=_elements(row.roots),
        macc=counted.macc,
        other_ops=counted.other_ops,
        input_bytes=counted.input_bytes,
        param_bytes=counted.param_bytes,
        output_bytes=counted.output_bytes,
        index=row.index,
        name=row.name,
        op_type=row.op_type,
        domain=row.domain,
        layer_class=row.cost.kind,
        inputs=tuple([_described(t.dtype, t.shape) for t in row.inputs if t is not None]),
        outputs=tuple([_described(t.dtype, t.shape) for t in row.outputs if t.name]),
        fused=tuple(row.fused),
        rewrites=tuple(row.rewrites),
        note=row.cost.note,
        uncounted=row.uncounted,
        branches=tuple(map(_branch, row.cost.branches)),
    )


def _branch(branch: Branch) -> BranchCounts:
    counted: Any = branch
    return BranchCounts(
        params=_elements(branch.roots),
        macc=counted.macc,
        other_ops=counted.other_ops,
        input_bytes=counted.input_bytes,
        param_bytes=counted.param_bytes,
        output_bytes=counted.output_bytes,
        name=branch.name,
    )


@lru_cache(maxsize=1 << 12)
def _described(dtype: int, shape: Shape | None) -> TensorShape:
    # Many tensors of a network share few shapes.
    name = TYPE_NAMES.get(dtype, "undefined")
    return name, None if shape is None else tuple(dim if isinstance(dim, int) else str(dim) for dim in shape)


def _open(row: Row) -> set[str]:
    counts = (row.macc, row.other_ops, row.input_bytes, row.param_bytes, row.output_bytes)
    return {name for count in counts if isinstance(count, Poly) for name in count.symbols()}


def _elements(roots: Iterable[Root]) -> int:
    return _sum(root.elements for root in roots)


def _sum(values: Iterable[Dim]) -> int:
    # Not sum(): it is typed for numbers alone.
    total: Dim = 0
    for value in values:
        total = total + value
    return _number(total)


def _number(value: Dim) -> int:
    """Return a count as `Counts` types it; see there for polynomials."""
    return cast("int", value)
