"""The page as a person uses it: in Chromium, without a network. Skipped where there is no Chromium."""

import shutil

import pytest
from playwright.sync_api import sync_playwright

from scoreloss.bench import decide, report
from scoreloss.torch import LOSSES
from tests.report_cases import made_up

CHROMIUM = shutil.which("chromium")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MARKUP = ("<b>bold</b>", "<img src=x onerror=document.title='hit'>", '"&amp;', "plain")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path"),
]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pages by name: a small one, a large one, one of several datasets."""
    folder = tmp_path_factory.mktemp("pages")
    pages = {
        "small": [made_up("movie_posters", labels=MARKUP)],
        "large": [made_up("large", losses=tuple(LOSSES), labels=1000, seeds=1)],
        "several": [made_up(f"data {k}", seed=k) for k in range(3)],
    }
    for name, results in pages.items():
        (folder / f"{name}.html").write_text(report.html(results))
    return folder


@pytest.fixture
def visit(browser, files):
    """Open a page; at the end of the test nothing may have been fetched, and no error said."""
    opened = []

    def go(name, width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        page = context.new_page()
        said, fetched = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: fetched.append(request.url))
        address = (files / f"{name}.html").as_uri()
        page.goto(address)
        opened.append((context, said, fetched, address))
        return page

    yield go
    for context, said, fetched, address in opened:
        context.close()
        assert said == []
        assert fetched == [address]


def draw_all(page):
    """Scroll through the visible figures until each has been drawn."""
    page.wait_for_selector("section:not([hidden]) .plot")
    for plot in page.query_selector_all("section:not([hidden]) .plot"):
        plot.scroll_into_view_if_needed()
        page.wait_for_function("plot => plot.dataset.drawn", arg=plot, timeout=60_000)


def column(page, number, text=".dataset:not([hidden]) .metric:not([hidden]) tbody"):
    return page.eval_on_selector(
        text,
        f"body => [...body.rows].map(row => row.cells[{number}].dataset.value ?? row.cells[{number}].innerText)",
    )


def test_a_click_sorts_and_another_turns_it_round(visit):
    page = visit("small")
    header = ".metric:not([hidden]) thead th:nth-child({}) button"
    last = 1 + list(decide.RULES).index("per_label")
    page.click(header.format(last + 1))
    values = [float(value) for value in column(page, last)]
    assert values == sorted(values, reverse=True)
    page.click(header.format(last + 1))
    assert [float(value) for value in column(page, last)] == sorted(values)
    sorted_by = page.eval_on_selector_all(
        ".metric:not([hidden]) [aria-sort]", "all => all.map(h => h.ariaSort)"
    )
    assert sorted_by == ["ascending"]
    page.click(header.format(1))
    found = column(page, 0)
    assert found == sorted(found, key=str.lower)
    published = page.locator(".metric:not([hidden]) thead th").count()
    page.click(header.format(published))
    printed = column(page, published - 1)
    assert printed[0] == "14.81"
    assert printed[-3:] == ["–"] * 3


def test_a_metric_is_chosen_and_only_its_table_shows(visit):
    page = visit("small")
    page.click(".board .pills button:has-text('macro F1')")
    shown = page.locator(".metric:visible")
    assert shown.count() == 1
    assert shown.get_attribute("data-metric") == "macro_f1"


def test_the_slider_moves_the_line_and_the_figures(visit, files):
    page = visit("small")
    draw_all(page)
    slider = page.locator("input[type=range]")
    before = page.locator(".readout").inner_text()
    assert page.locator(".slider output").inner_text() == "0.5"
    slider.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    assert page.locator(".slider output").inner_text() == "0.7"
    assert page.locator(".readout").inner_text() != before
    line = page.evaluate(
        "document.querySelector('.slider').parentElement.querySelector('.plot').layout.shapes[0].x0"
    )
    assert line == 0.7


def test_every_figure_is_drawn_and_answers_its_controls(visit):
    page = visit("small")
    draw_all(page)
    assert page.locator(".plot .main-svg").count() >= 5
    for box in page.query_selector_all(".figures select"):
        values = box.eval_on_selector_all("option", "all => all.map(option => option.value)")
        box.select_option(values[-1])
    page.wait_for_timeout(300)
    title = page.evaluate("document.querySelector('.plot').layout.xaxis.title.text")
    assert title == "mAP, %"


def test_labels_that_are_markup_stay_words(visit):
    page = visit("small")
    draw_all(page)
    texts = page.evaluate(
        "[...document.querySelectorAll('.plot')].flatMap(p => p.data).flatMap(t => t.text ?? [])"
    )
    assert "&lt;b&gt;bold&lt;/b&gt;" in texts
    assert page.locator("img").count() == 0
    assert page.title() == "scoreloss bench: movie_posters"


@pytest.mark.parametrize("name", ["small", "large"])
def test_a_phone_scrolls_in_one_direction(visit, name):
    page = visit(name, 390, 844, has_touch=True, is_mobile=True)
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert (
        page.evaluate(
            "Math.max(...[...document.querySelectorAll('.card')].map(c => c.getBoundingClientRect().right))"
        )
        <= 390
    )
    assert page.locator("h1").bounding_box()["y"] < 200


def luminance(page, what):
    rgb = page.evaluate(
        f"getComputedStyle(document.querySelector('{what}')).{'color' if what != 'body' else 'backgroundColor'}"
    )
    return sum(float(part) for part in rgb.strip("rgb()").split(",")[:3]) / 3


def test_dark_mode_is_dark_and_follows_the_system(visit):
    page = visit("small", color_scheme="dark")
    draw_all(page)
    assert luminance(page, "body") < 50
    assert luminance(page, "h1") > 200
    font = "document.querySelector('.plot').layout.font.color"
    dark = page.evaluate(font)
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"before => {font} !== before", arg=dark)
    assert luminance(page, "body") > 200


def test_a_thousand_labels_and_all_losses_are_drawn_in_seconds(visit):
    page = visit("large")
    draw_all(page)
    points = page.evaluate(
        "[...document.querySelectorAll('.plot')].flatMap(p => p.data).filter(t => t.mode === 'markers')[0].x.length"
    )
    assert points == 1000
    assert page.locator(".metric:visible tbody tr").count() == len(LOSSES) + len(decide.FLOORS)


def test_another_dataset_is_one_click_away(visit):
    page = visit("several")
    draw_all(page)
    assert page.locator("section:visible .kicker").inner_text() == "scoreloss bench data 0"
    page.click("nav.datasets button:has-text('data 2')")
    assert page.locator("section:visible .kicker").all_inner_texts() == ["scoreloss bench data 2"]
    draw_all(page)


def test_without_scripts_the_leaderboard_reads(browser, files):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((files / "small.html").as_uri())
    assert page.locator("caption:visible").count() == 6
    context.close()
