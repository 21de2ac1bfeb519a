"""`whatif conv` on the command line: the talk's pair, ratios to the plain one, what a data sheet lacks."""

import json

import pytest

from roof_agent.errors import UsageError
from roof_collector.cli import main, parser
from roof_collector.commands.options import byte_size, share

TALK = ("whatif", "conv", "--cin", "256", "--cout", "256", "--size", "56", "--kernel", "3")


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict]:
    assert main([*TALK, "--json", *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    return {row["name"]: row for row in document["alternatives"]}


def test_the_talks_convolution_and_bottleneck(capsys: pytest.CaptureFixture[str]) -> None:
    rows = asked(capsys)
    assert rows["plain"]["flops"] == 3_699_376_128
    assert rows["plain"]["memory_bytes"] == 8_781_824
    assert rows["bottleneck"]["flops"] == 436_731_904
    assert rows["bottleneck"]["memory_bytes"] == 9_912_320
    assert rows["bottleneck"]["seconds_ratio"] == pytest.approx(
        rows["bottleneck"]["seconds"] / rows["plain"]["seconds"]
    )
    # Less work, more traffic: what the second view is for.
    assert rows["bottleneck"]["flops_ratio"] < 0.12
    assert rows["bottleneck"]["bytes_ratio"] > 1
    assert {"depthwise separable", "2 groups", "4 groups", "8 groups"} < set(rows)


def test_every_question_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    rows = asked(
        capsys, "--dtype", "fp16,int8", "--winograd", "2,4", "--fft", "--sparsity", "50%", "--cache", "512KiB"
    )  # fmt: skip
    assert rows["int8"]["memory_bytes"] * 4 == rows["plain"]["memory_bytes"]
    assert rows["winograd F(4x4,3x3)"]["macc"] * 4 == rows["plain"]["macc"]
    assert "fft" in rows
    assert rows["structured sparsity 0.5"]["macc"] * 2 == rows["plain"]["macc"]
    assert rows["unstructured sparsity 0.5"]["macc"] * 2 == rows["plain"]["macc"]
    tiled = rows["depthwise separable, tiled"]
    assert tiled["memory_bytes"] < rows["depthwise separable"]["memory_bytes"]
    assert "MB saved" in tiled["note"]


def test_an_element_type_runs_at_its_own_peak_where_the_data_sheet_has_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    five = asked(capsys, "--dtype", "fp16", "--device", "rpi5")
    assert five["float16"]["seconds_ratio"] == pytest.approx(0.5)
    three = asked(capsys, "--dtype", "fp16", "--device", "rpi3")
    assert three["float16"]["seconds_ratio"] == 1
    assert three["float16"]["peak_type"] == "float32"
    assert main([*TALK, "--dtype", "fp16"]) == 0
    assert "states no peak for float16; float32's is supposed" in capsys.readouterr().out


def test_the_table_names_the_device_and_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(TALK) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Raspberry Pi 3" in lines[0]
    plain = next(line.split() for line in lines if line.startswith("plain"))
    assert plain == ["plain", "589.8", "k", "1.850", "G", "3.699", "G", "8.782", "MB", "421.3", "96.34", "ms",
                     "compute", "1.000", "1.000", "1.000"]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("whatif", "conv", "--cin", "8"), "needs --cin, --cout and --size"),
        ((*TALK, "--size", "big"), "--size 'big' is neither a number"),
        ((*TALK, "--stride", "2", "--winograd", "4"), "Winograd needs"),
        ((*TALK, "--winograd", "3"), "no Winograd filter of 5 points"),
        ((*TALK, "--device", "pi9"), "no data sheet of 'pi9'"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == UsageError.exit_code == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert says in captured.err


@pytest.mark.parametrize(
    "flags", [("--cache", "big"), ("--sparsity", "1"), ("--dtype", "fp7"), ("--groups", "0")]
)
def test_values_are_checked_by_the_parser(flags: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parser().parse_args([*TALK, *flags])
    assert stopped.value.code == 2


def test_sizes_and_shares() -> None:
    assert [byte_size(text) for text in ("128KiB", "1 MB", "4096", "0.5MiB", "2k")] == [
        131072,
        1_000_000,
        4096,
        524288,
        2048,
    ]
    assert [share(text) for text in ("0.5", "25%", "0")] == [0.5, 0.25, 0]
