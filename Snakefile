# The build graph is part of `companion`: figures with their tasks, then the site. `companion build` runs it on this
# machine. On a cluster, run `snakemake --executor slurm ...` yourself.
from companion.project.paths import WORKFLOW


include: str(WORKFLOW)


rule all:
    input:
        rules.site.input,
