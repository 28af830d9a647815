"""A logger plugin of Snakemake, `--logger companion`: it prints the progress of a build as notebooks end.

Snakemake finds plugins by the name of a package on its path, so `companion build` adds the folder of this package.
"""

# Its flags are properties in the base class.
# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false

import json
import os
import time
from logging import LogRecord

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from companion.build.progress import KNOWN, RULE, Progress


class LogHandler(LogHandlerBase):
    """A handler of Snakemake's events. The other output of Snakemake stays as it is."""

    writes_to_stream = writes_to_file = needs_rulegraph = False
    has_filter = has_formatter = True

    def __post_init__(self) -> None:
        """Read from the environment how long the notebooks took last time."""
        self.progress = Progress(**json.loads(os.environ[KNOWN]))
        self.notebooks: dict[int, str] = {}

    def emit(self, record: LogRecord) -> None:
        """Note the start of a notebook; print the progress at its end."""
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO and str(getattr(record, "rule_name", "")).startswith(RULE):
            name = self.notebooks[record.__dict__["jobid"]] = record.__dict__["rule_name"].removeprefix(RULE)
            self.progress.start(name, time.monotonic())
        elif event == LogEvent.JOB_FINISHED and (name := self.notebooks.get(record.__dict__["job_id"])):
            print(f"  notebooks: {self.progress.end(name, time.monotonic())}", flush=True)
