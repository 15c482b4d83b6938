"""The page of the service as a person uses it, in Chromium. Skipped where there is no Chromium."""

import base64
import re
import shutil

import pytest
from playwright.sync_api import sync_playwright

import scoreloss as sl
from tests.model_cases import texts
from tests.serving import served
from tests.test_serve import MARKUP, QUICK, matrix, of_images

__all__ = ["of_images"]

CHROMIUM = shutil.which("chromium")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 120_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path"),
]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS, timeout=PATIENCE)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def servers(of_images, tmp_path_factory):
    """Texts with thresholds and labels that are markup; rows with a rule that has no thresholds, behind a token."""
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCORELOSS_CACHE", str(folder / "cache"))
        some, labels = texts()
        named = [[MARKUP[label] for label in found] for found in labels]
        sl.Classifier(rule="global", **QUICK).fit(some, named).save(folder / "texts")
        sl.Classifier(rule="expected_f1", **QUICK).fit_dataset(matrix(width=3)).save(folder / "rows")
    with (
        served(folder / "texts") as of_texts,
        served(folder / "rows", "--token", "secret") as of_rows,
        served(of_images[1]) as images,
    ):
        yield {"texts": of_texts, "rows": of_rows, "images": images}


@pytest.fixture
def visit(browser, servers):
    """Open a page; at the end no error may have been said, and nothing fetched from elsewhere."""
    opened = []

    def go(name, path="/", width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        said, fetched = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: fetched.append(request.url))
        page.goto(servers[name].address + path)
        opened.append((context, said, fetched, servers[name].address))
        return page

    yield go
    for context, said, fetched, address in opened:
        context.close()
        assert [line for line in said if not re.search(r"a status of (401|422) ", line)] == []
        assert all(url.startswith((address, "data:", "blob:")) for url in fetched), fetched


def predicted(page, text="tank battle kiss wedding"):
    page.fill("#text", text)
    page.click("#go")
    page.wait_for_selector("#answer:not([hidden]) li")


def chosen(page):
    return page.locator("#bars li.yes .name").all_inner_texts()


def test_a_text_gets_labels_bars_and_thresholds(visit, servers):
    page = visit("texts")
    predicted(page)
    answer = servers["texts"].predict("tank battle kiss wedding")[0]
    names = page.locator("#bars .name").all_inner_texts()
    assert sorted(names) == sorted(MARKUP.values())
    assert sorted(chosen(page)) == sorted(answer["labels"])
    shown = dict(zip(names, page.locator("#bars .score").all_inner_texts(), strict=True))
    assert shown == {label: f"{100 * score:.1f} %" for label, score in answer["scores"].items()}
    assert page.locator("#bars .mark").count() == 3
    widths = page.eval_on_selector_all("#bars .bar", "all => all.map(bar => parseFloat(bar.style.width))")
    assert widths == pytest.approx(
        sorted((100 * s for s in answer["scores"].values()), reverse=True), abs=0.01
    )


def test_labels_that_are_markup_stay_words(visit):
    page = visit("texts")
    predicted(page)
    assert page.locator("#answer img, #answer b").count() == 0
    assert page.title() == "scoreloss serve: data"


def test_the_slider_changes_labels_and_goes_back(visit):
    page = visit("texts")
    predicted(page)
    before = chosen(page)
    page.fill("#slide", "-100")
    assert len(chosen(page)) == 3
    assert "thresholds that were moved" in page.inner_text("#expected")
    page.fill("#slide", "100")
    assert len(chosen(page)) < 3
    assert chosen(page) != before or len(before) == 0
    page.click("#back")
    assert chosen(page) == before
    assert page.input_value("#slide") == "0"


def test_a_row_behind_a_token_and_one_threshold_for_all(visit, servers):
    page = visit("rows")
    page.wait_for_selector("#token:not([hidden])")
    page.fill("#key", "wrong")
    page.click("#token button")
    page.wait_for_selector("#error:not([hidden])")
    page.fill("#key", "secret")
    page.click("#token button")
    page.wait_for_selector("#ask:not([hidden])")
    assert page.locator("#error").is_hidden()
    page.fill("#text", "1, 2, x")
    page.click("#go")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error") == "a row of numbers is needed"
    predicted(page, "1, 2.5; 3")
    servers["rows"].token = "secret"
    answer = servers["rows"].predict([1, 2.5, 3])[0]
    assert sorted(chosen(page)) == sorted(answer["labels"])
    assert page.locator("#bars .mark").count() == 0
    page.fill("#slide", "0")
    assert page.inner_text("#at") == "0.500"
    assert sorted(chosen(page)) == sorted(label for label, score in answer["scores"].items() if score >= 0.5)
    page.fill("#text", "1, 2")
    page.click("#go")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error") == "inputs[0] has 2 numbers: the model takes 3"


def test_an_image_is_chosen_or_dropped(visit, of_images):
    classifier, _, paths = of_images
    page = visit("images")
    page.wait_for_selector("#drop:not([hidden])")
    page.click("#go")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error") == "choose an image first"
    page.set_input_files("#file", paths[0])
    page.click("#go")
    page.wait_for_selector("#answer:not([hidden]) li")
    assert chosen(page) == classifier.predict(paths[:1])[0]
    assert page.evaluate("document.querySelector('#shown').naturalWidth") == 40
    before = page.locator("#bars .score").all_inner_texts()
    dropped = "coded => { const data = new DataTransfer(); const bytes = Uint8Array.from(atob(coded), c => c.charCodeAt(0));"
    dropped += "data.items.add(new File([bytes], 'x.png', { type: 'image/png' })); return data; }"
    coded = base64.b64encode(paths[1].read_bytes()).decode()
    page.dispatch_event("#drop", "drop", {"dataTransfer": page.evaluate_handle(dropped, coded)})
    page.click("#go")
    page.wait_for_function(
        "before => document.querySelector('#bars .score').innerText !== before", arg=before[0]
    )
    page.set_input_files("#file", {"name": "x.png", "mimeType": "image/png", "buffer": b"no image"})
    page.click("#go")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error") == "inputs[0] is no image that can be read"


def test_a_phone_scrolls_in_one_direction(visit):
    page = visit("texts", width=390, height=844, has_touch=True, is_mobile=True)
    predicted(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_dark_mode_is_dark(visit):
    for scheme, dark in (("dark", True), ("light", False)):
        page = visit("texts", color_scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, colour.strip("rgb()").split(","))) < 150) == dark


def test_the_page_for_programs_opens_without_a_script(visit):
    page = visit("texts", "/docs", java_script_enabled=False)
    assert "POST /predict" in page.locator("h2").all_inner_texts()
