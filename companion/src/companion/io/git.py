"""Run git in the repository of a folder, whatever the environment says about other repositories."""

import os
import subprocess
from pathlib import Path

# Variables that name a repository or an index. Git sets them for hooks, where they would take precedence over a folder.
OF_ANOTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")


def output_of(folder: Path, *arguments: str) -> bytes:
    """Return what `git` with these arguments prints in `folder`.

    Raises:
      OSError: if git is not installed.
      subprocess.CalledProcessError: if git fails; its `stderr` has the reason.
    """
    environment = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_REPOSITORY}
    command = ["git", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True).stdout
