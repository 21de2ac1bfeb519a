"""Counting against what onnxruntime executes, and against other counters.

    python benchmarks/counting.py            the acceptance graphs and the light models of the onnx package
    MODELS=folder python benchmarks/counting.py         real networks (*.onnx below the folder) too
    PEERS_PYTHON=python ...                  an interpreter that has onnx-tool, onnxsim, onnx-opcounter

Executed: every node's real shapes out of onnxruntime's profile with optimisations off, and the formula
of its operator. The last line is one JSON object: how many graphs each way, and the time of a graph of
2,000 nodes beside the fastest peer's in the same run.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from roof_agent.errors import UserError
from roof_collector.analysis import analyze, load_model

ROOT = Path(__file__).parents[1]
GRAPHS = ROOT / "tests" / "data" / "graphs"
# What open dims are fed with, by a part of their input's or own name; 1 for any other.
SIZES = {
    "height": 320, "width": 320, "image_width": 160, "sequence": 576, "unk__749": 2,
}  # fmt: skip
# Dims of inputs that say nothing themselves: the third-party OCR models' images, the speech model's chunk.
FEEDS: dict[str, dict[str, tuple[int, ...]]] = {
    "ch_PP-OCRv4_det_infer": {"x": (1, 3, 320, 480)},
    "ch_PP-OCRv4_rec_infer": {"x": (1, 3, 48, 320)},
    "ch_ppocr_mobile_v2.0_cls_infer": {"x": (1, 3, 48, 192)},
    "silero_vad": {"input": (1, 512), "state": (2, 1, 128), "sr": ()},
}
VALUES: dict[str, int] = {"sr": 16000}


def feeds_of(model: onnx.ModelProto, name: str) -> dict[str, Any]:
    """Return seeded inputs of the sizes that the tables above say."""
    random = np.random.default_rng(0)
    stored = {proto.name for proto in model.graph.initializer}
    feeds = {}
    for info in model.graph.input:
        if info.name in stored:
            continue
        dims = FEEDS.get(name, {}).get(info.name)
        if dims is None:
            dims = tuple(
                dim.dim_value if dim.dim_value > 0 else SIZES.get(dim.dim_param, 1)
                for dim in info.type.tensor_type.shape.dim
            )
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if info.name in VALUES:
            feeds[info.name] = np.full(dims, VALUES[info.name], dtype)
        elif np.issubdtype(dtype, np.floating):
            feeds[info.name] = random.uniform(0, 1, dims).astype(dtype)
        else:
            feeds[info.name] = np.ones(dims, dtype)
    return feeds


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and all graphs inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
                yield from graphs_of(inner)


class Executed:
    """Counts what onnxruntime's profile says was executed."""

    def __init__(self, model: onnx.ModelProto) -> None:
        # The optimiser is off, but functions are inlined and names may be changed: the saved graph tells.
        self.nodes: dict[str, onnx.NodeProto] = {}
        self.weights: dict[str, tuple[int, ...]] = {}
        for graph in graphs_of(model.graph):
            self.weights |= {proto.name: tuple(proto.dims) for proto in graph.initializer}
            for node in graph.node:
                self.nodes[node.name] = node
                if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
                    self.weights[node.output[0]] = tuple(node.attribute[0].t.dims)
                elif node.op_type in {"Identity", "DequantizeLinear"} and node.input[0] in self.weights:
                    self.weights[node.output[0]] = self.weights[node.input[0]]

    def macc(self, event: dict[str, Any]) -> int:
        """Return the macc of one executed kernel."""
        kind = event["args"]["op_name"]
        node = self.nodes[event["name"].removesuffix("_kernel_time")]
        ins = [tuple(*entry.values()) for entry in event["args"]["input_type_shape"]]
        out = [tuple(*entry.values()) for entry in event["args"]["output_type_shape"]]
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        written = math.prod(out[0]) if out else 0
        weight = self._weight(node, ins, 3 if kind == "QLinearConv" else 1)
        if kind in {"Conv", "ConvInteger", "QLinearConv"}:
            return written * math.prod(weight[1:])
        if kind == "ConvTranspose":
            return math.prod(ins[0]) * math.prod(weight[1:])
        if kind in {"MatMul", "MatMulInteger", "Gemm"}:
            return written * ins[0][0 if kind == "Gemm" and attributes.get("transA") else -1]
        if kind in {"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"}:
            # Gates*H by I; the quantised one stores it transposed.
            rows, width = weight[1:] if kind != "DynamicQuantizeLSTM" else weight[:0:-1]
            return ins[0][0] * ins[0][1] * weight[0] * rows * (width + attributes["hidden_size"])
        if kind in {"Einsum", "Attention"}:
            raise NotImplementedError(kind)
        return 0

    def _weight(self, node: onnx.NodeProto, ins: list[Any], slot: int) -> Any:
        """Return a weight's dims; a prepacked one isn't in the profile, so the graph tells first."""
        if slot >= len(node.input):
            return ()
        return self.weights.get(node.input[slot]) or (ins[slot] if slot < len(ins) else ())


def executed_macc(model: onnx.ModelProto, feeds: dict[str, Any]) -> int:
    """Run a model once, optimisations off, and return the macc of its kernels."""
    named = onnx.ModelProto()
    named.CopyFrom(model)
    for graph_number, graph in enumerate(graphs_of(named.graph)):
        for index, node in enumerate(graph.node):
            node.name = f"g{graph_number}_{index}"
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling, options.log_severity_level = True, 4
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = f"{folder}/profile"
        session = ort.InferenceSession(named.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, feeds)
        events = json.loads(Path(session.end_profiling()).read_text())
    executed = Executed(named)
    return sum(
        executed.macc(event)
        for event in events
        if event.get("cat") == "Node"
        and event["name"].endswith("_kernel_time")
        and "op_name" in event["args"]
    )


def counted_macc(path: Path, feeds: dict[str, Any]) -> int:
    """Return what the engine counts of a model fed so."""
    shapes = {name: value.shape for name, value in feeds.items()}
    values = {name: value for name, value in feeds.items() if name in VALUES}
    return analyze(load_model(path), shapes=shapes, values=values).totals.macc


def big_graph(nodes: int) -> onnx.ModelProto:
    """Return a network of about so many nodes: residual blocks of conv, batch norm, Relu, Add."""
    made, stored, x = [], [], "x"
    for block in range(nodes // 5):
        w = numpy_helper.from_array(np.zeros((16, 16, 3, 3), np.float32), f"w{block}")
        norm = [numpy_helper.from_array(np.ones(16, np.float32), f"s{block}_{part}") for part in range(4)]
        stored += [w, *norm]
        made += [
            helper.make_node(
                "Conv", [x, w.name], [f"c{block}"], f"conv{block}", pads=[1] * 4, kernel_shape=[3, 3]
            ),
            helper.make_node(
                "BatchNormalization",
                [f"c{block}", *(each.name for each in norm)],
                [f"b{block}"],
                f"bn{block}",
            ),
            helper.make_node("Relu", [f"b{block}"], [f"r{block}"], f"relu{block}"),
            helper.make_node("Add", [f"r{block}", x], [f"a{block}"], f"add{block}"),
            helper.make_node("Relu", [f"a{block}"], [f"y{block}"], f"out{block}"),
        ]
        x = f"y{block}"
    graph = helper.make_graph(
        made,
        "big",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 16, 32, 32))],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, (1, 16, 32, 32))],
        stored,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# What each peer's own interpreter runs: macc of one file, and its seconds (best of the given rounds).
PEER = """
import sys, time, json, contextlib, io
peer, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
best, macc = None, None
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    import onnx
    if peer == "onnx-tool":
        import onnx_tool
    elif peer == "onnxsim":
        from onnxsim import model_info
    else:
        import onnx_opcounter
    for _ in range(rounds):
        start = time.process_time()
        if peer == "onnx-tool":
            m = onnx_tool.Model(path, {"verbose": False})
            m.graph.shape_infer()
            m.graph.profile()
            macc = m.graph.macs[0] if isinstance(m.graph.macs, (list, tuple)) else m.graph.macs
        elif peer == "onnxsim":
            info = model_info.ModelInfo(onnx.load(path))
            macc = getattr(info, "macs", None) or getattr(info, "flops", None)
        else:
            macc = onnx_opcounter.calculate_macs(onnx.load(path))
        seconds = time.process_time() - start
        best = seconds if best is None else min(best, seconds)
print(json.dumps({"macc": None if macc is None else float(macc), "seconds": best}))
"""
PEERS = ("onnx-tool", "onnxsim", "onnx-opcounter")


def peer(name: str, path: Path, rounds: int = 1) -> dict[str, Any] | None:
    """Return what a peer says of a file; None where it refuses, fails or isn't installed."""
    python = os.environ.get("PEERS_PYTHON", sys.executable)
    try:
        ran = subprocess.run(
            [python, "-c", PEER, name, str(path), str(rounds)],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    return found


def truths() -> Iterator[tuple[str, Path, int, int | str]]:
    """Yield name, file, true macc and the engine's (or why it refused)."""
    expected = json.loads((GRAPHS / "expected.json").read_text())
    for name, wanted in expected.items():
        path = GRAPHS / f"{name}.onnx"
        yield (
            name,
            path,
            wanted["macc"],
            guarded(lambda p=path, w=wanted: analyze(load_model(p), bind=w["bind"]).totals.macc),
        )
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    folders = [light, *([Path(os.environ["MODELS"])] if "MODELS" in os.environ else [])]
    for path in sorted(path for folder in folders for path in folder.rglob("*.onnx")):
        model = onnx.load(path)
        feeds = feeds_of(model, path.stem)
        try:
            true = executed_macc(model, feeds)
        except Exception as error:  # noqa: BLE001 - what onnxruntime can't run has no truth to compare with
            print(f"{path.stem}: not run ({str(error).splitlines()[0][:90]})", file=sys.stderr)
            continue
        yield path.stem, path, true, guarded(lambda p=path, f=feeds: counted_macc(p, f))


def guarded(count: Any) -> int | str:
    """Return a count, or the one line of its refusal."""
    try:
        return int(count())
    except (UserError, TypeError) as error:
        return str(error)


def main() -> None:
    """Print the table, then the JSON line."""
    verdicts = {"exact": 0, "wrong": 0, "refused": 0}
    print(f"{'graph':34}{'executed macc':>18}{'roofline':>18}  " + "".join(f"{name:>16}" for name in PEERS))
    for name, path, true, counted in truths():
        verdict = "exact" if counted == true else "refused" if isinstance(counted, str) else "wrong"
        verdicts[verdict] += 1
        cells = []
        for each in PEERS:
            found = peer(each, path)
            macc = None if found is None else found["macc"]
            cells.append("refused" if macc is None else "exact" if macc == true else f"{macc:.4g}")
        shown = counted if isinstance(counted, int) else "refused"
        print(
            f"{name[:33]:34}{true:>18,}{shown:>18}  " + "".join(f"{cell:>16}" for cell in cells), flush=True
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.onnx"
        path.write_bytes(big_graph(2000).SerializeToString())
        own, others = math.inf, dict.fromkeys(PEERS, math.inf)
        # In turns, so that whatever else the machine does hits all alike; CPU seconds of the best round.
        for _ in range(3):
            own = min(own, *(timed(path) for _ in range(5)))
            for each in PEERS:
                found = peer(each, path, rounds=5)
                others[each] = min(others[each], found["seconds"] if found else math.inf)
    others = {name: seconds for name, seconds in others.items() if seconds < math.inf}
    fastest = min(others.values(), default=None)
    print(
        f"2,000 nodes: roofline {own:.3f} s, "
        + ", ".join(f"{name} {value:.3f} s" for name, value in others.items())
    )
    print(
        json.dumps(
            {
                "bench": "counting",
                **verdicts,
                "seconds_2000_nodes": own,
                "fastest_peer_seconds": fastest,
                "cost_time_ratio": own / fastest if fastest else None,
            }
        )
    )


def timed(path: Path) -> float:
    """Return the CPU seconds from the file to the counts."""
    start = time.process_time()
    analyze(load_model(path))
    return time.process_time() - start


if __name__ == "__main__":
    main()
