"""The README's example prints what the README says it prints; files and folders that documents name exist."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_example_prints_the_table_below_it():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (expected,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    finished = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert finished.stdout == expected


def test_links_to_files_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_folders_named_in_the_licence_exist():
    """It says which licence the files in them have."""
    folders = re.findall(r"`([\w/]+/)`", (ROOT / "LICENSE-TEXT.md").read_text(encoding="utf-8"))
    assert len(folders) >= 5
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []
