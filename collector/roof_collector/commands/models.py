"""`roof-collector models list | add FILE | export zoo:NAME OUT`: the networks that there are."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from roof_agent.errors import UsageError
from roof_collector.commands import Subparsers, add_database, add_json


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "list the networks, add one, write one of the zoo to a file"
    parser = subparsers.add_parser("models", help=words, description=words)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    words = "list the zoo and the networks that were added"
    listing = actions.add_parser("list", help=words, description=words)
    add_database(listing)
    add_json(listing)
    words = "keep a network's weightless form (types and dims, never its weights) in the database"
    adding = actions.add_parser("add", help=words, description=words)
    adding.add_argument("file", type=Path, metavar="FILE", help="an ONNX file")
    adding.add_argument("--name", default="", help="what to call it (default: the file's name)")
    add_database(adding)
    add_json(adding)
    words = "write a network to an ONNX file"
    export = actions.add_parser("export", help=words, description=words)
    export.add_argument("model", metavar="zoo:NAME", help="the network")
    export.add_argument("out", type=Path, metavar="OUT", help="the file to write")
    export.add_argument(
        "--weights",
        choices=("none", "random"),
        default="none",
        help="none: types and dims alone, which can be counted and not run; random: seeded numbers that "
        "neither overflow nor turn denormal, in every tensor that has none (default: none)",
    )
    export.add_argument("--seed", type=int, default=0, metavar="N", help="of random weights (default: 0)")
    export.add_argument("--batch", type=int, metavar="N", help="of a network of the zoo (default: 1)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    actions = {"list": _list, "add": _add, "export": _export}
    return actions[arguments.action](arguments)


def _list(arguments: argparse.Namespace) -> int:
    from roof_collector.models import zoo
    from roof_collector.models.library import added

    own = []
    if not _missing(arguments.database):
        from roof_collector.store.engine import open_database

        engine = open_database(arguments.database, read_only=True)
        own = added(engine)
        engine.dispose()
    if arguments.json:
        document = {
            "schema": 1,
            "zoo": [
                {"name": found.name, "input": list(found.input_shape), "help": found.help}
                for found in zoo.NETWORKS.values()
            ],
            "added": [
                {"name": found.name, "sha256": found.sha256, "size_bytes": found.size_bytes} for found in own
            ],
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    rows = [(f"zoo:{found.name}", found.help) for found in zoo.NETWORKS.values()]
    rows += [(found.name, f"added, {found.sha256[:12]}, {found.size_bytes} B") for found in own]
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        sys.stdout.write(f"{name.ljust(width)}  {text}\n")
    return 0


def _missing(url: str) -> bool:
    """Return whether the database is an SQLite file that nobody has made yet."""
    return url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists()


def _add(arguments: argparse.Namespace) -> int:
    from roof_collector.models.library import add
    from roof_collector.store.engine import open_database

    engine = open_database(arguments.database)
    stored = add(engine, arguments.file, arguments.name)
    engine.dispose()
    if arguments.json:
        document = {"name": stored.name, "sha256": stored.sha256, "size_bytes": stored.size_bytes}
        sys.stdout.write(json.dumps({"schema": 1, **document}, indent=2) + "\n")
    else:
        sys.stdout.write(f"{stored.name}  {stored.sha256}  {stored.size_bytes} B without its weights\n")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from roof_collector.models.library import ZOO, load

    if not arguments.model.startswith(ZOO):
        raise UsageError(f"{arguments.model!r} is no network of the zoo: they are written {ZOO}NAME")
    model = load(arguments.model, batch=arguments.batch)
    if arguments.weights == "random":
        from roof_agent.models.weightless import fill

        fill(model, arguments.seed)
    data = model.SerializeToString(deterministic=True)
    try:
        arguments.out.write_bytes(data)
    except OSError as error:
        raise UsageError(f"can't write {arguments.out}: {error.strerror or error}") from error
    sys.stderr.write(f"wrote {arguments.out}, {len(data)} bytes\n")
    return 0
