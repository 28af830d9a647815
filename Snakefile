# The build graph: a rule a notebook, then the book. `companion build` calls it, locally; on a cluster call
# `snakemake --executor slurm …` yourself. Every output is a stamp that bears its content key in its name, so the
# targets that are not there are exactly the stale ones, and Snakemake agrees with `companion list` by construction.
# With `--config shards=1` the pieces of heavy simulations are jobs too.
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
pieces = {name: [] for name in stamps}
if config.get("shards"):
    from companion import shards  # imports all experiments, so only when asked for

    stale = [name for name in stamps if not freshness.is_fresh(house, name, profile)]
    pieces |= {name: list(shards.files(house, name, profile).values()) for name in stale}


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
        input:
            # a shard's key is in its path, so only its being there matters
            ancient(pieces[notebook]),
        output:
            stamp,
        params:
            notebook=notebook,
        shell:
            f"{command} run {{params.notebook}} --profile {profile}"


rule shard:
    output:
        house.build(profile).shards / "{notebook}.{key}" / "{shard}.npz",
    wildcard_constraints:
        notebook=r"\w+",
        key=r"[0-9a-f]+",
        shard=r"[^/]+",
    shell:
        f"{command} shard {{wildcards.notebook}} {{wildcards.shard}} --profile {profile}"


rule book:
    input:
        # the book's key holds theirs, so only their being there matters, not which file is younger
        ancient(list(stamps.values())),
    output:
        freshness.stamp(house, freshness.BOOK, profile),
    shell:
        f"{command} book --profile {profile}"
