# The build graph of a book, which its Snakefile includes: a rule a notebook, then the site. Every output is a stamp that
# bears its content key in its name, so the targets that are not there are exactly the stale ones, and Snakemake agrees
# with `companion list` by construction.
# With `--config tasks=1` the tasks of heavy computations are jobs too.
import sys

from companion.build import cache_keys
from companion.project import parameters
from companion.project.paths import DEFAULT_PROFILE, Project, relative

project = Project(Path(workflow.basedir))


def asked_for(megabytes):
    """What a scheduler is asked for; on one machine it means nothing. A job may take as long as one step may, in minutes.

    A job that is sent again asks for more: few take more than most (decision 8 has what was measured).
    """
    runtime = int(60 * project.settings.hours_a_step)
    return {"mem_mb": lambda wildcards, attempt: megabytes * attempt, "runtime": runtime}


profile = config.get("profile", DEFAULT_PROFILE)
project.require_profile(profile)
if workflow.is_main_process:
    parameters.check_profiles(project)
    cache_keys.discard_damaged(project, profile)
command = [sys.executable, "-m", "companion"]  # the shell sees each word quoted, `{command:q}`
names = project.notebooks()
stamps = cache_keys.stamps(project, profile)


def below(paths):
    """Paths as Snakemake is given them: from the root, whose own name may hold braces, which would be wildcards."""
    return [relative(path, project.root) for path in paths]


site_stamp = stamps.pop(cache_keys.BOOK)
stale = [name for name in names if not cache_keys.intact(project, stamps[name])]
tasks = {name: [] for name in names}
if config.get("tasks") and workflow.is_main_process:  # a job has its target, and need not know what others there are
    from companion.build import task_cache  # imports the chapters that have tasks, so only when asked for

    tasks |= {name: below(task_cache.files(project, name, profile).values()) for name in stale}


def drawn(notebook):
    """The stamps of its pictures, by figure."""
    return {target.split("-")[1]: stamps[target] for target in cache_keys.pictures(project, notebook)}


workdir: str(project.root)


rule site:
    input:
        below([site_stamp]),


rule figures:
    input:
        below(stamps.values()),


for notebook in names:
    missing = {figure: stamp for figure, stamp in drawn(notebook).items() if not stamp.is_file()}

    if notebook in stale:  # its kernel draws every picture

        rule:
            name:
                f"notebook_{notebook}"
            input:
                # a task's key is in its path, so only its being there matters
                ancient(tasks[notebook]),
            output:
                below([stamps[notebook], *drawn(notebook).values()]),
            params:
                notebook=notebook,
            resources:
                **asked_for(megabytes=4000),
            shell:
                "{command:q} run {params.notebook} --profile {profile:q}"

    elif missing:  # no kernel: what is out of date is drawn again

        rule:
            name:
                f"pictures_{notebook}"
            output:
                below(missing.values()),
            params:
                figures=[f"{notebook}/{figure}" for figure in missing],
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
        **asked_for(megabytes=2000),
    shell:
        "{command:q} task {wildcards.notebook} {wildcards.task:q} --profile {profile:q}"


rule book:
    input:
        # the book's key holds theirs, so only their being there matters, not which file is younger
        ancient(below(stamps.values())),
    output:
        below([site_stamp]),
    resources:
        **asked_for(megabytes=4000),
    shell:
        "{command:q} site --profile {profile:q}"
