"""The pages are the same over both database engines."""

from __future__ import annotations

from types import ModuleType
from typing import Any

# Of the two sites' boards and runs these are the times at which they were filled.
_TIMES = {"received_at", "heard_at", "ended_at", "first_seen_at", "last_seen_at"}


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in _TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def test_both_engines_give_the_same_documents(database: str, site: Any, seed: ModuleType) -> None:
    board, run = f"/devices/{seed.FINGERPRINT}.json", f"/runs/{seed.RUN_ID}.json"
    with seed.served(database) as other:
        seed.fill(other.engine)
        for path in (
            "/devices.json",
            "/devices.json?filter=model:RASPBERRY&sort=-last_seen_at",
            "/devices.json?filter=100%25",
            board,
            board + "?sort=-failed",
            run,
            run + "?sort=-best&filter=threads:1",
            run + "?sort=ci_low&size=5&page=2",
            run + "?sort=-grade&filter=peak",
            f"/runs/{seed.RUN_ID}/networks/{seed.NETWORK_SEQ}.json",
        ):
            assert timeless(other.json(path)) == timeless(site.json(path)), path
        for path in ("/", "/runs/%00", "/runs/none", "/devices?filter=%00"):
            assert other.client.get(path).status_code == site.client.get(path).status_code
