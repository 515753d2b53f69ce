"""Each citation is in references.bib, and all other citations of the paper agree with that entry."""

import re
from pathlib import Path

import pytest

from flashtwin import FlashtwinError, _core, ftls, policy_info, study
from flashtwin._ftls import ftl_info
from flashtwin.references import _read, cited, page, references

ROOT = Path(__file__).parents[2]
ENTRY = """% a comment
@article{doe2000a,
  author = {A. Doe and B. Roe},
  title = {A Title},
  journal = {A Journal},
  volume = {1},
  number = {2},
  year = {2000},
}
"""


def titles():
    return {each.title.casefold() for each in references().values()}


def test_sources_of_policies_and_layers_are_entries():
    known = {(each.authors, each.title, each.venue, each.year) for each in references().values()}
    infos = [*map(policy_info, _core.catalog_names()), *map(ftl_info, ftls())]
    sources = [info["source"] for info in infos]
    assert len(sources) > 30
    missing = [s for s in sources if (s["authors"], s["title"], s["venue"], s["year"]) not in known]
    assert not missing


def test_titles_in_studies_and_device_files_are_entries():
    papers = [study.read(name).paper for name in study.names()]
    comments = [
        " ".join(line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#"))
        for path in sorted((ROOT / "devices").glob("*.toml"))
    ]
    cites = [title for text in (*papers, *comments) for title in re.findall(r'"([A-Z][^"]{30,})"', text)]
    assert len(cites) >= len(papers) + 4
    assert {title.casefold() for title in cites} <= titles()


def test_the_page_is_made_of_the_file():
    assert (ROOT / "docs" / "references.md").read_text() == page()


def test_a_key_is_cited_and_other_text_stays():
    assert cited("wei2014cbm").startswith('Q. Wei, C. Chen, J. Yang, "CBM: A Cooperative')
    assert cited("A. Doe, no paper") == "A. Doe, no paper"


def test_an_entry():
    (found,) = _read(ENTRY, "a.bib")
    assert str(found) == 'A. Doe, B. Roe, "A Title", A Journal 1(2), 2000'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@article{", "@book{", "a.bib:2: @book: unknown"),
        ("  year = {2000},\n", "", "a.bib:8: doe2000a: year is missing"),
        ("year = {2000}", "year = {soon}", "must be a whole number"),
        ("  number = {2},", "  pages = {2},", "pages: unknown"),
        ("  number = {2},", "  volume = {2},", "a.bib:7: volume: there twice"),
        ("  title = {A Title},", '  title = "A Title",', "a.bib:4: .* must have the form"),
        ("@article{doe2000a,", "article doe2000a", "a.bib:2: .* must have the form"),
        ("  year = {2000},\n}\n", "  year = {2000},\n", "has no end"),
    ],
)
def test_errors_are_named(old, new, message):
    assert old in ENTRY
    with pytest.raises(FlashtwinError, match=message):
        list(_read(ENTRY.replace(old, new), "a.bib"))


def test_keys_are_there_once():
    with pytest.raises(FlashtwinError, match="doe2000a: there twice"):
        list(_read(ENTRY + ENTRY, "a.bib"))
