"""Hook of mkdocs (mkdocs.yml): adds the pages outside docs/ to the site and rewrites links to them.

A link to a file that is no page, such as a source file, becomes plain text: the site has only pages.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
#: Pages outside docs/, and their places in the site.
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"(?<!!)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")
IMAGE = re.compile(r"(!\[[^]]*\]\()docs/")
CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/."""
    for name, place in OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of a page to the site's places."""
    origin = {place: name for name, place in OUTSIDE.items()}
    source = origin.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def lead(link: re.Match[str]) -> str:
        text, target = link.groups()
        if "://" in target or target.startswith("#"):
            return link.group()
        path, hash_, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        place = OUTSIDE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if place is None:
            if not (ROOT / path).exists():
                raise ValueError(f"{source}: {target} leads nowhere")
            return text
        place = posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".")
        return f"[{text}]({place}{hash_}{anchor})"

    parts = CODE.split(markdown)
    # Code within a link's text is put back before the link is read.
    whole = "".join(f"\0{i}\0" if i % 2 else part for i, part in enumerate(parts))
    whole = IMAGE.sub(r"\1", LINK.sub(lead, whole)) if source in OUTSIDE else LINK.sub(lead, whole)
    return re.sub("\0(\\d+)\0", lambda found: parts[int(found[1])], whole)
