# The Snakemake rules of a book, which its Snakefile includes: one per notebook, one for tasks, one for the site. Every
# output is a stamp whose name contains its cache key, so the missing outputs are exactly the stale targets, and Snakemake
# agrees with `companion list` by construction.
# With `--config tasks=1` the tasks of heavy computations are jobs, too.
import sys

from companion.build import cache_keys
from companion.build.progress import RULE, known_seconds
from companion.build.run_spec import RunSpec, Target, pictures_of
from companion.project import costs, parameters
from companion.project.paths import DEFAULT_PROFILE, Project, relative

project = Project(Path(workflow.basedir))
# The megabytes that most notebooks, and the site, need at most, with a margin (decision 8 has the measurements).
MEMORY = 4000


def resources_of_a_job(megabytes):
    """Return the resources that a scheduler is asked for; a local build ignores them.

    The runtime, in minutes, is the longest that one cell may take. A job that is submitted again asks for more memory.
    """
    runtime = int(60 * project.settings.hours_a_step)
    return {"mem_mb": lambda wildcards, attempt: megabytes * attempt, "runtime": runtime}


profile = config.get("profile", DEFAULT_PROFILE)
project.require_profile(profile)
if workflow.is_main_process:
    parameters.check_profiles(project)
    cache_keys.discard_damaged(project, profile)
measured = costs.read(project, profile)
command = [sys.executable, "-m", "companion"]  # `{command:q}` quotes each word for the shell
names = project.notebooks()
stamps = cache_keys.stamps(project, profile)


def megabytes_of(notebook):
    """Return the memory of a run: what it needed elsewhere and a quarter more, or the usual amount if that is more."""
    needed = measured[notebook].megabytes if notebook in measured else None
    return max(MEMORY, round(1.25 * needed)) if needed else MEMORY


def below(paths):
    """Return paths relative to the root, which is the working folder."""
    return [relative(path, project.root) for path in paths]


site_stamp = stamps.pop(cache_keys.Site.BUILT)
stale = [name for name in names if not cache_keys.intact(project, stamps[Target(name)])]
durations = known_seconds(project, profile, stale)
tasks = {name: [] for name in names}
if config.get("tasks") and workflow.is_main_process:  # the process of a job needs no list of tasks
    from companion.build import task_cache  # imports the chapters that have tasks

    tasks |= {name: below(task_cache.files(project, RunSpec(name, profile)).values()) for name in stale}


workdir: str(project.root)


rule site:
    input:
        below([site_stamp]),


rule figures:
    input:
        below(stamps.values()),


for notebook in names:
    pictures = pictures_of(project, notebook)
    missing = [target for target in pictures if not stamps[target].is_file()]

    if notebook in stale:  # the run also draws every picture

        rule:
            name:
                f"{RULE}{notebook}"
            input:
                # the path contains the key of the tasks, so only its existence matters
                ancient(tasks[notebook]),
            output:
                below(stamps[target] for target in [Target(notebook), *pictures]),
            params:
                notebook=notebook,
            priority:
                round(durations[notebook] or 0)  # the longest first, so that at the end no core is idle for long
            resources:
                **resources_of_a_job(megabytes=megabytes_of(notebook)),
            shell:
                "{command:q} run {params.notebook} --profile {profile:q}"

    elif missing:  # the numbers are fresh: only pictures are redrawn

        rule:
            name:
                f"pictures_{notebook}"
            output:
                below(stamps[target] for target in missing),
            params:
                figures=[str(target) for target in missing],
            shell:
                "{command:q} redraw {params.figures} --profile {profile:q}"


rule task:
    output:
        below([project.build(profile).tasks / "{notebook}.{key}" / "{task}.npz"]),
    wildcard_constraints:
        notebook=r"\w+",
        key=r"[0-9a-f]+",
        task=r"[^/]+",
    resources:
        **resources_of_a_job(megabytes=2000),
    shell:
        "{command:q} run {wildcards.notebook} --task {wildcards.task:q} --profile {profile:q}"


rule book:
    input:
        # the key of the site contains the others, so only their existence matters, not which file is newer
        ancient(below(stamps.values())),
    output:
        below([site_stamp]),
    resources:
        **resources_of_a_job(megabytes=MEMORY),
    shell:
        "{command:q} site --profile {profile:q}"
