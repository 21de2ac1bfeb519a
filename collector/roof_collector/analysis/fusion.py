"""Fusion presets: which nodes a runtime merges, as lists of named rewrites.

Each rewrite takes a node into the one that does its work (its host): the taken node's row stays, with
no bytes, and the host's row names it. Under `basic` and `ideal` the operations are the talk's:
multiply-accumulates alone, so flops = 2*macc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roof_agent.errors import UsageError
from roof_collector.analysis.row import Row
from roof_collector.analysis.symbols import Dim
from roof_collector.analysis.tensor import Tensor, packed_bytes

PRODUCTS = frozenset(
    {"dense", "pointwise", "grouped", "depthwise", "transposed", "gemm"}
    | {f"quantised-{kind}" for kind in ("dense", "pointwise", "grouped", "depthwise", "gemm")}
)
ADDRESSED = {
    "Concat": "concat-by-address",
    "Slice": "slice-by-address",
    "Split": "split-by-address",
    "Transpose": "shuffle-by-address",
}
# What runs in integers between a DequantizeLinear and a QuantizeLinear without being a product.
QUANTISED_KINDS = PRODUCTS | {"elementwise", "activation", "pool", "movement", "view", "transpose", "resize"}


class Flow:
    """Who makes and who reads each tensor, by identity."""

    def __init__(self, rows: Sequence[Row], outputs: Sequence[Tensor]) -> None:
        self.rows = rows
        self._maker = {id(tensor): row for row in rows for tensor in row.outputs}
        self._readers: dict[int, list[Row]] = {}
        for row in rows:
            for tensor in {id(tensor): tensor for tensor in row.inputs if tensor is not None}.values():
                self._readers.setdefault(id(tensor), []).append(row)
        self._kept = {id(tensor) for tensor in outputs}

    def maker(self, tensor: Tensor | None) -> Row | None:
        """Return the node that makes a tensor, None for an input or a stored constant."""
        return None if tensor is None else self._maker.get(id(tensor))

    def readers(self, tensor: Tensor) -> list[Row]:
        """Return the nodes that read a tensor."""
        return self._readers.get(id(tensor), [])

    def is_result(self, tensor: Tensor) -> bool:
        """Tell whether a tensor leaves the graph."""
        return id(tensor) in self._kept

    def private_maker(self, tensor: Tensor | None) -> Row | None:
        """Return a tensor's maker where it has one reader and no other use, so that it may vanish."""
        row = self.maker(tensor)
        if row is None or tensor is None or self.is_result(tensor) or len(self.readers(tensor)) != 1:
            return None
        return row


def _take(host: Row, row: Row, rewrite: str, *, more_params: Dim = 0) -> None:
    """Let `host` do the work of `row` on its way out: it writes what `row` wrote."""
    target = host.root()
    row.host = target
    target.output_bytes = row.output_bytes
    target.param_bytes = target.param_bytes + more_params
    _empty(row)
    target.fused += [row.label, *row.fused]
    target.rewrites += [rewrite, *row.rewrites]
    row.fused, row.rewrites = [], [rewrite]


def _drop(row: Row, rewrite: str) -> None:
    """Do away with a node: its readers take the data where they are."""
    row.host = row
    _empty(row)
    row.rewrites.append(rewrite)


def _empty(row: Row) -> None:
    row.input_bytes = row.param_bytes = row.output_bytes = 0


def _data(row: Row) -> Tensor | None:
    """Return the one input that isn't a constant, None where there are several."""
    found = {id(tensor): tensor for tensor in row.inputs if tensor is not None and not tensor.constant}
    return next(iter(found.values())) if len(found) == 1 else None


def _channels(row: Row) -> Dim | None:
    """Return how many output channels a product has."""
    shape = row.outputs[0].shape
    if not shape or len(shape) < 2:
        return None
    return shape[-1] if row.cost.kind.endswith("gemm") else shape[1]


def _has_bias(host: Row) -> bool:
    slot = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2, "FusedConv": 2, "FusedGemm": 2}.get(host.op_type)
    own = slot is not None and slot < len(host.inputs) and host.inputs[slot] is not None
    return own or "bias" in host.rewrites or "batch-norm" in host.rewrites


def _bias_bytes(host: Row, channels: Dim) -> Dim:
    return 0 if _has_bias(host) else packed_bytes(channels, host.outputs[0].dtype)


def _into_host(flow: Flow) -> None:
    """Bias, scale, batch normalisation and activation go into the product (or addition) before them.

    In the order of execution: a batch normalisation may stand behind a bias, never behind an activation.
    """
    for row in flow.rows:
        if row.cost.kind == "activation":
            _activation(flow, row)
        elif row.op_type == "BatchNormalization":
            _batch_norm(flow, row)
        elif row.op_type in {"Add", "Sub", "Mul", "Div"} and len(row.inputs) == 2:
            _bias_or_scale(flow, row)


def _product_before(flow: Flow, tensor: Tensor | None) -> Row | None:
    """Return the product whose bare result a tensor is."""
    maker = flow.private_maker(tensor)
    host = maker.root() if maker is not None else None
    if host is None or host.cost.kind not in PRODUCTS or "activation" in host.rewrites:
        return None
    return host


def _batch_norm(flow: Flow, row: Row) -> None:
    """Batch normalisation behind a product: folded into its weights, a bias of Cout is left."""
    host = _product_before(flow, row.inputs[0])
    if host is not None and (channels := _channels(host)) is not None:
        _take(host, row, "batch-norm", more_params=_bias_bytes(host, channels))


def _bias_or_scale(flow: Flow, row: Row) -> None:
    """Fold a constant for each output channel: added, a product's bias; multiplied, its weights."""
    constants = [tensor for tensor in row.inputs if tensor is not None and tensor.constant]
    host = _product_before(flow, _data(row))
    if host is None or not constants:
        return
    channels = _channels(host)
    if channels is None or row.outputs[0].shape != host.outputs[0].shape:
        return
    if not _per_channel(constants[0], channels, gemm=host.cost.kind.endswith("gemm")):
        return
    if row.op_type in {"Add", "Sub"}:
        _take(host, row, "bias", more_params=_bias_bytes(host, channels))
    elif row.op_type == "Mul" or constants[0] is row.inputs[1]:
        _take(host, row, "scale")


def _per_channel(constant: Tensor, channels: Dim, *, gemm: bool) -> bool:
    shape = constant.shape
    if shape is None or constant.elements not in {1, channels}:
        return False
    if constant.elements == 1:
        return True
    if gemm:
        return shape[-1] == channels
    spatial = [dim for dim in shape if dim != 1]
    return len(spatial) == 1 and shape[0 if len(shape) < 4 else 1] == channels


def _activation(flow: Flow, row: Row) -> None:
    """Apply an activation on the way out of a product, a batch normalisation or an addition."""
    maker = flow.private_maker(_data(row))
    host = maker.root() if maker is not None else None
    if host is None:
        return
    if host.cost.kind in PRODUCTS or host.op_type in {"Add", "Sum", "BatchNormalization"}:
        _take(host, row, "activation")


def _quantised(flow: Flow) -> None:
    """Run what stands between DequantizeLinear and QuantizeLinear in the stored type itself.

    A constant's DequantizeLinear goes wherever it stands: weights are read as they are stored.
    """
    for row in flow.rows:
        if row.op_type == "QuantizeLinear" and not row.absorbed():
            host = flow.private_maker(row.inputs[0])
            host = host.root() if host is not None else None
            if host is not None and host.cost.kind in QUANTISED_KINDS and _reads_quantised(flow, host):
                _take(host, row, "quantise")
    for row in flow.rows:
        if row.op_type != "DequantizeLinear" or row.absorbed() or flow.is_result(row.outputs[0]):
            continue
        out, readers = row.outputs[0], flow.readers(row.outputs[0])
        if not readers or out.stored is None:
            continue
        if not out.constant and not all("quantise" in reader.root().rewrites for reader in readers):
            continue
        _drop(row, "dequantise")
        for reader in readers:
            _read_as_stored(reader.root(), out, row)


def _reads_quantised(flow: Flow, row: Row) -> bool:
    data = [tensor for tensor in row.inputs if tensor is not None and not tensor.constant]
    return any(
        (maker := flow.maker(tensor)) is not None and maker.op_type == "DequantizeLinear" for tensor in data
    )


def _read_as_stored(reader: Row, out: Tensor, row: Row) -> None:
    stored = out.stored
    if stored is None or out.nbytes is None or stored.nbytes is None or reader.cost.view:
        return
    difference = stored.nbytes - out.nbytes
    if out.constant:
        reader.param_bytes = reader.param_bytes + difference
    else:
        reader.input_bytes = reader.input_bytes + difference
    reader.fused.append(row.label)
    reader.rewrites.append("dequantise")


def _residual_add(flow: Flow) -> None:
    """Add a shortcut where its other operand is written."""
    for row in flow.rows:
        operands = [tensor for tensor in row.inputs if tensor is not None and not tensor.constant]
        if row.op_type not in {"Add", "Sum"} or row.absorbed() or len(operands) < 2:
            continue
        if len({operand.shape for operand in operands}) != 1 or operands[0].shape is None:
            continue
        _drop(row, "residual-add")


def _residual_read(flow: Flow) -> None:
    """Read the shortcut nevertheless."""
    for row in flow.rows:
        if "residual-add" in row.rewrites:
            row.input_bytes = row.outputs[0].nbytes or 0
            row.rewrites.append("residual-read")


def _excitation(flow: Flow) -> None:
    """Squeeze and excitation's product with one factor a channel goes into the convolution behind it."""
    for row in flow.rows:
        shapes = [tensor.shape for tensor in row.inputs if tensor is not None and not tensor.constant]
        if row.op_type != "Mul" or row.absorbed() or len(shapes) != 2:
            continue
        left, right = shapes
        if left is None or right is None or len(left) < 3 or len(left) != len(right) or left == right:
            continue
        factor, out = (left if left != row.outputs[0].shape else right), row.outputs[0].shape or ()
        if factor[:2] == out[:2] and all(dim == 1 for dim in factor[2:]):
            _drop(row, "excitation")


def _addressed(flow: Flow) -> None:
    """Concat, Slice, Split and a shuffle's Transpose cost nothing where addresses are assigned for them."""
    for row in flow.rows:
        if row.op_type in ADDRESSED and row.domain == "" and not row.absorbed():
            into_depthwise = row.op_type == "Transpose" and _feeds_depthwise(flow, row)
            _drop(row, "shuffle-into-depthwise" if into_depthwise else ADDRESSED[row.op_type])
    for row in flow.rows:
        if row.cost.kind != "activation" or row.absorbed():
            continue
        source = _source(flow, _data(row))
        if source is not None and source.absorbed():
            _drop(row, "activation")


def _feeds_depthwise(flow: Flow, row: Row) -> bool:
    readers = flow.readers(row.outputs[0])
    while len(readers) == 1 and readers[0].cost.view:
        readers = flow.readers(readers[0].outputs[0])
    return bool(readers) and all(reader.cost.kind == "depthwise" for reader in readers)


def _source(flow: Flow, tensor: Tensor | None) -> Row | None:
    """Return the node that makes a tensor, behind its views."""
    row = flow.maker(tensor)
    while row is not None and row.cost.view and row.inputs:
        row = flow.maker(row.inputs[0])
    return row


Rewrite = Callable[[Flow], None]
BASIC: tuple[Rewrite, ...] = (_into_host, _quantised)
PRESETS: dict[str, tuple[Rewrite, ...]] = {
    "none": (),
    "basic": BASIC,
    "ideal": (*BASIC, _excitation, _residual_add, _addressed),
}


def fuse(rows: Sequence[Row], preset: str, outputs: Sequence[Tensor], *, residual_read: bool = False) -> None:
    """Rewrite the rows as a preset says; UsageError for one that there isn't."""
    if preset not in PRESETS:
        raise UsageError(f"there is no fusion preset {preset!r}; there are {', '.join(PRESETS)}")
    if preset == "none":
        return
    flow = Flow(rows, outputs)
    for rewrite in PRESETS[preset]:
        rewrite(flow)
    if residual_read:
        _residual_read(flow)
    for row in rows:
        row.other_ops = 0
