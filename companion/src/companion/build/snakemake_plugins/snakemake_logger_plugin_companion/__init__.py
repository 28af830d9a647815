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

from companion.build.progress import KNOWN, RULE, TASK, Progress


class LogHandler(LogHandlerBase):
    """A handler of Snakemake's events. The other output of Snakemake stays as it is."""

    writes_to_stream = writes_to_file = needs_rulegraph = False
    has_filter = has_formatter = True

    def __post_init__(self) -> None:
        """Read from the environment how long the notebooks are expected to take."""
        self.notebooks = Progress(**json.loads(os.environ[KNOWN]))
        self.tasks = Progress({}, self.notebooks.cores)
        self.task_numbers: dict[int, str] = {}
        self.running: dict[int, tuple[str, Progress, str]] = {}

    def emit(self, record: LogRecord) -> None:
        """Note the start of a notebook or a task; print the progress at its end."""
        event, about, now = getattr(record, "event", None), record.__dict__, time.monotonic()
        if event == LogEvent.RUN_INFO:
            numbers = map(str, range(about["stats"].get(TASK, 0)))
            self.tasks = Progress(dict.fromkeys(numbers, 1.0), self.notebooks.cores)
        elif event == LogEvent.JOB_INFO:
            job, rule = about["jobid"], str(about["rule_name"])
            if rule == TASK:
                step = "tasks", self.tasks, self.task_numbers.setdefault(job, str(len(self.task_numbers)))
            elif rule.startswith(RULE):
                step = "notebooks", self.notebooks, rule.removeprefix(RULE)
            else:
                return
            self.running[job] = step
            step[1].start(step[2], now)
        elif event == LogEvent.JOB_FINISHED and (step := self.running.pop(about["job_id"], None)):
            steps, progress, name = step
            print(f"  {steps}: {progress.end(name, now)}", flush=True)
