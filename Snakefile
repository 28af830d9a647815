# The build graph: a rule a notebook, then the book. `companion build` calls it, locally; on a cluster call
# `snakemake --executor slurm …` yourself. Every output is a stamp that bears its content key in its name, so the
# targets that are not there are exactly the stale ones, and Snakemake agrees with `companion list` by construction.
import sys

from companion import freshness, parameters
from companion.house import DEFAULT_PROFILE, House

house = House(Path(workflow.basedir))
profile = config.get("profile", DEFAULT_PROFILE)
house.require_profile(profile)
if workflow.is_main_process:
    parameters.check_profiles(house)
    freshness.discard_damaged(house, profile)
command = f"{sys.executable} -m companion"
stamps = {name: freshness.stamp(house, name, profile) for name in house.notebooks()}


rule site:
    input:
        freshness.stamp(house, freshness.BOOK, profile),


rule figures:
    input:
        list(stamps.values()),


for notebook, stamp in stamps.items():

    rule:
        name:
            f"notebook_{notebook}"
        output:
            stamp,
        params:
            notebook=notebook,
        shell:
            f"{command} run {{params.notebook}} --profile {profile}"


rule book:
    input:
        # the book's key holds theirs, so only their being there matters, not which file is younger
        ancient(list(stamps.values())),
    output:
        freshness.stamp(house, freshness.BOOK, profile),
    shell:
        f"{command} book --profile {profile}"
