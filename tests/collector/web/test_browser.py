"""The pages in a real browser: the plot renders, dots and rows are linked, and nothing complains."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if CHROMIUM is None or DRIVER is None:
    pytest.skip("no chromium and chromedriver on the PATH", allow_module_level=True)
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    # A page that still scrolls moves away under the pointer.
    "--force-prefers-reduced-motion",
)


def started(folder: Path, *more: str) -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in (*_ARGUMENTS, f"--user-data-dir={folder}", *more):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    running = started(tmp_path_factory.mktemp("profile"), "--window-size=1300,1000")
    yield running
    running.quit()


@pytest.fixture
def network(site: Any, seed: ModuleType) -> str:
    return f"{site.url}/runs/{seed.RUN_ID}/networks/{seed.NETWORK_SEQ}"


def drawn(browser: Any, address: str) -> None:
    """Open a network's page and wait for its plot."""
    from selenium.webdriver.support.wait import WebDriverWait

    browser.get(address)
    WebDriverWait(browser, 20).until(
        lambda page: page.execute_script("return document.querySelector('figure.roofline').dataset.drawn")
    )


def dot_at(browser: Any, index: int) -> tuple[int, int]:
    """Return where layer `index` is drawn, in pixels of the canvas."""
    return tuple(
        browser.execute_script(
            """
            const chart = echarts.getInstanceByDom(document.querySelector(".canvas"));
            for (const [seriesIndex, series] of chart.getOption().series.entries())
              for (const item of series.data)
                if (item.layer?.index === arguments[0])
                  return chart.convertToPixel({ seriesIndex }, item.value);
            """,
            index,
        )
    )


def hover(browser: Any, x: float, y: float) -> None:
    """Put the pointer on a point of the canvas."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    canvas = browser.find_element(By.CSS_SELECTOR, ".canvas")
    browser.execute_script("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", canvas)
    left, top = int(x - canvas.size["width"] / 2), int(y - canvas.size["height"] / 2)
    ActionChains(browser).move_to_element_with_offset(canvas, left, top).pause(0.3).perform()


def complaints(browser: Any) -> list[str]:
    return [
        entry["message"] for entry in browser.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}
    ]


def test_every_page_loads_without_a_complaint(browser: Any, site: Any, seed: ModuleType) -> None:
    complaints(browser)
    for path in ("/", f"/devices/{seed.FINGERPRINT}", f"/runs/{seed.RUN_ID}"):
        browser.get(site.url + path)
        assert browser.execute_script("return document.querySelectorAll('main h1').length") == 1
    assert complaints(browser) == []


def test_the_plot_is_drawn_from_the_json(browser: Any, site: Any, network: str) -> None:
    complaints(browser)
    drawn(browser, network)
    plotted = browser.execute_script(
        """
        const chart = echarts.getInstanceByDom(document.querySelector(".canvas"));
        return chart.getOption().series.filter((series) => series.type === "scatter")
          .flatMap((series) => series.data.map((item) => [item.layer.index, ...item.value]));
        """
    )
    rows = site.json(network.removeprefix(site.url) + ".json")["layers"]["rows"]
    expected = [
        [row["index"], row["intensity"], row["achieved_flops_per_s"]]
        for row in rows
        if row["intensity"] and row["achieved_flops_per_s"]
    ]
    assert sorted(plotted) == sorted(expected)
    painted = browser.execute_script(
        """
        const canvas = document.querySelector(".canvas canvas");
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(new Uint32Array(pixels.buffer)).size;
        """
    )
    assert painted > 50
    assert complaints(browser) == []


def test_a_dot_and_its_row_are_linked(browser: Any, network: str) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    drawn(browser, network)
    complaints(browser)
    hover(browser, *dot_at(browser, 0))
    lit = browser.execute_script("return document.querySelector('tr.lit')?.dataset.index")
    tip = browser.find_element(By.CSS_SELECTOR, ".tip").text
    assert "FLOP/B" in tip
    assert "of the roof" in tip
    assert lit is not None
    assert tip.startswith(lit)
    ActionChains(browser).click().perform()
    assert browser.current_url.endswith(f"#layer-{lit}")
    row = browser.find_element(By.ID, "layer-3")
    ActionChains(browser).move_to_element(row).click().pause(0.3).perform()
    assert browser.find_element(By.CSS_SELECTOR, ".tip").text.startswith("3 ")
    assert complaints(browser) == []


def test_sorting_and_filtering_by_hand(browser: Any, network: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    drawn(browser, network)
    browser.find_element(By.LINK_TEXT, "Share").click()
    assert "sort=-share" in browser.current_url
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    browser.switch_to.active_element.send_keys("Conv", Keys.ENTER)
    assert "filter=Conv" in browser.current_url
    assert "sort=-share" in browser.current_url
    rows = browser.find_elements(By.CSS_SELECTOR, "tbody tr")
    assert len(rows) == 27


def test_a_narrow_phone_scrolls_only_inside_tables(
    browser: Any, site: Any, seed: ModuleType, network: str
) -> None:
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        paths = (
            site.url + "/",
            f"{site.url}/devices/{seed.FINGERPRINT}",
            f"{site.url}/runs/{seed.RUN_ID}",
            network,
        )
        for address in paths:
            browser.get(address)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 360, address
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_dark_is_dark(browser: Any, network: str) -> None:
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        drawn(browser, network)
        background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert max(int(part) for part in background.removeprefix("rgb(").removesuffix(")").split(",")) < 60
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_without_javascript_the_plot_is_there(browser: Any, network: str) -> None:
    from selenium.webdriver.common.by import By

    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(network)
        plot = browser.find_element(By.CSS_SELECTOR, "svg.plot")
        assert plot.is_displayed()
        assert len(plot.find_elements(By.CSS_SELECTOR, "a circle")) > 50
        assert len(browser.find_elements(By.CSS_SELECTOR, "table.layers tbody tr")) == 84
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_hostile_name_runs_nothing(browser: Any, tmp_path: Path, seed: ModuleType) -> None:
    name = "\"'></title><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    with seed.served(tmp_path) as running:
        with running.engine.begin() as connection:
            number = seed.a_run(connection, seed.board(connection, model=name, hostname=name))
            digest, nodes = seed.a_model(connection, "squeezenet1_0", [name])
            seed.measured(connection, number, 1, "bandwidth", "copy", "bytes_per_s", 1e9)
            seed.measured(connection, number, 2, "peak", "fma", "flops_per_s", 1e9)
            seed.a_network(connection, number, 4, name, nodes, digest)
        complaints(browser)
        drawn(browser, f"{running.url}/runs/{seed.RUN_ID}/networks/4")
        hover(browser, *dot_at(browser, 0))
        assert "<script>" in browser.execute_script("return document.querySelector('.tip').textContent")
        assert browser.title != "owned"
        assert complaints(browser) == []
