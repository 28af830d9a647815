# The rules are those of `companion`: tasks, notebooks, pictures, then the site. `companion build` runs them on this
# machine; on a cluster call `snakemake --executor slurm …` yourself.
from companion.project.paths import WORKFLOW


include: str(WORKFLOW)


rule all:
    input:
        rules.site.input,
