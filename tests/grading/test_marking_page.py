"""The page on which an instructor marks, in a real browser from file://; what it downloads, labkit grade reads."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from gradebooks import COURSE, booked, record
from lab_pages import LabPage, opened_page

from labkit.grading import marks
from labkit.grading.grade import class_policy
from labkit.grading.records import Record
from labkit.grading.requests import Request
from labkit.grading.scoring import Gradebook

pytestmark = pytest.mark.browser
HOSTILE = "</script><img src=x onerror=\"document.title = 'mine'\"> \u202e"
ASKED = "My answer also doubles negative numbers."


@pytest.fixture
def lab_page(browser) -> Iterator[LabPage]:
    with opened_page(browser) as page:
        yield page


def students() -> list[Record]:
    kept = [record(name) for name in ("ada", "bob", "cem")]
    kept[0].requests = [Request("01-double", ASKED)]
    kept[2].items[3].written = HOSTILE
    return kept


def again(out: Path, **said: object) -> Gradebook:
    return booked(out, marks=class_policy(out, {}, COURSE).marks, **said)


def downloaded(page, out: Path, press: str = "d") -> Path:
    with page.expect_download() as download:
        page.keyboard.press(press)
    path = out / "by_hand" / download.value.suggested_filename
    assert not path.exists()
    download.value.save_as(path)
    return path


@pytest.mark.slow
def test_keys_give_points_that_survive_a_reload_and_that_labkit_reads(lab_page: LabPage, tmp_path: Path) -> None:
    booked(tmp_path, *students())
    first = "student,exercise,points,comment\nbob,01-why,0,too short\nada,01-double,1,half right\n"
    (tmp_path / "by_hand" / "marks.csv").write_text(first)
    again(tmp_path)
    page = lab_page.page
    page.goto((tmp_path / "by_hand" / "texts.html").as_uri())
    current, state = page.locator("article.current"), page.locator("#state")
    assert page.title() == "Mark by hand: 01_sample"
    assert page.locator("article blockquote").all_inner_texts()[2] == HOSTILE
    assert "1 of 4 are marked" in state.inner_text()
    for key in ("1", ".", "ArrowRight"):
        page.keyboard.press(key)
    assert current.get_attribute("data-student") == "bob"
    assert page.locator("article.current input").input_value() == "0"
    page.keyboard.press("9")  # the exercise has 2
    assert page.locator("article.current input").input_value() == "0"
    page.keyboard.press("n")
    page.keyboard.press("x")
    page.keyboard.press("Shift+1")
    assert page.locator("article.current textarea").input_value() == "too short"
    page.keyboard.press("c")
    page.keyboard.type(", and =mine")
    page.keyboard.press("Control+Enter")
    assert current.get_attribute("data-answers") == marks.answer_to([ASKED])
    assert ASKED in current.inner_text()
    assert page.locator("article.current textarea").input_value() == ""  # the first marking answers nothing
    assert "3 of 4 are marked" in state.inner_text()
    page.keyboard.press("2")
    page.keyboard.press("c")
    page.keyboard.type('It does not: "-2" gives 0.')
    page.keyboard.press("Escape")
    page.reload()
    assert "4 of 4 are marked. Not everything is downloaded yet." in state.inner_text()
    path = downloaded(page, tmp_path)
    assert path.name == "marks-3.csv"
    assert "Not everything" not in state.inner_text()
    book = again(tmp_path)
    scores = {row.name: row.scores["01-why"] for row in book.rows}
    assert [scores[name].points for name in ("ada", "bob")] == [1.5, 0]
    assert scores["cem"].left_out == "excused"
    assert scores["cem"].hand.comments == ("too short, and =mine",)
    ada = book.rows[0]
    assert (ada.asking, ada.scores["01-double"].points) == ([], 2)
    assert ada.scores["01-double"].hand.comments == ('It does not: "-2" gives 0.',)
    page.reload()
    assert state.inner_text() == "4 of 4 are marked."
    assert page.locator("article[data-answered] textarea").input_value() == 'It does not: "-2" gives 0.'
    assert page.locator("body").get_attribute("data-download") == "marks-4.csv"
    assert marks.read(downloaded(page, tmp_path), COURSE) == []  # labkit has read everything


def test_a_browser_that_keeps_nothing_says_so_and_a_downloaded_file_is_loaded(
    lab_page: LabPage, tmp_path: Path
) -> None:
    booked(tmp_path, *students())
    page = lab_page.page
    page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('forbidden'); }});")
    page.goto((tmp_path / "by_hand" / "texts.html").as_uri())
    state = page.locator("#state")
    page.keyboard.press("2")
    assert "This browser keeps nothing for this page" in state.inner_text()
    path = downloaded(page, tmp_path)
    path.write_text(path.read_text() + "dora,Dora,01-why,,2,1,elsewhere,\n")
    page.reload()
    assert "0 of 4 are marked" in state.inner_text()
    for _ in range(2):
        page.locator("#load").set_input_files(path)
        page.wait_for_function("document.getElementById('state').textContent.includes('1 of 4')")
        page.wait_for_function("document.getElementById('load').value === ''")
    assert "1 lines of the loaded file are about something else" in state.inner_text()
    path.unlink()
    path = downloaded(page, tmp_path)
    assert {(mark.student, mark.points) for mark in marks.read(path, COURSE)} == {("ada", 2), ("dora", 1)}
    path.unlink()
    assert {mark.student for mark in marks.read(downloaded(page, tmp_path), COURSE)} == {"ada"}
