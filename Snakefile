# The build graph is the machine's: a rule a notebook, its pictures, its pieces, then the book. `companion build` calls
# it, locally; on a cluster call `snakemake --executor slurm …` yourself.
from companion.project.paths import WORKFLOW


include: str(WORKFLOW)


rule all:
    input:
        rules.site.input,
