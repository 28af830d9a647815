"""A logger plugin of Snakemake, `--logger companion`: it prints the progress of a build as notebooks and tasks end.

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

from companion.build.progress import KNOWN, RULE, TASK, Progress, TaskProgress


class LogHandler(LogHandlerBase):
    """A handler of Snakemake's events. The other output of Snakemake stays as it is."""

    writes_to_stream = writes_to_file = needs_rulegraph = False
    has_filter = has_formatter = True

    def __post_init__(self) -> None:
        """Read from the environment how long the notebooks are expected to take."""
        self.progress = Progress(**json.loads(os.environ[KNOWN]))
        self.tasks = TaskProgress(0, self.progress.cores)
        self.rules: dict[int, str] = {}

    def emit(self, record: LogRecord) -> None:
        """Note the start of a notebook or a task; print the progress at its end."""
        event, about, now = getattr(record, "event", None), record.__dict__, time.monotonic()
        if event == LogEvent.RUN_INFO:
            self.tasks.total = about["stats"].get(TASK, 0)
        elif event == LogEvent.JOB_INFO:
            job, rule = about["jobid"], str(about["rule_name"])
            self.rules[job] = rule
            if rule == TASK:
                self.tasks.start(job, now)
            elif rule.startswith(RULE):
                self.progress.start(rule.removeprefix(RULE), now)
        elif event == LogEvent.JOB_FINISHED:
            job = about["job_id"]
            rule = self.rules.get(job, "")
            if rule == TASK:
                print(f"  tasks: {self.tasks.end(job, now)}", flush=True)
            elif rule.startswith(RULE):
                print(f"  notebooks: {self.progress.end(rule.removeprefix(RULE), now)}", flush=True)
