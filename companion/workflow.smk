# The build graph of a book, which its Snakefile includes: a rule a notebook, then the site. Every output is a stamp that
# bears its content key in its name, so the targets that are not there are exactly the stale ones, and Snakemake agrees
# with `companion list` by construction.
# With `--config pieces=1` the pieces of heavy computations are jobs too.
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
names = house.notebooks()
stamps = freshness.stamps(house, profile)
site_stamp = stamps.pop(freshness.BOOK)
stale = [name for name in names if not freshness.intact(house, stamps[name])]
pieces = {name: [] for name in names}
if config.get("pieces"):
    from companion import precomputing  # imports the chapters that have pieces, so only when asked for

    pieces |= {name: list(precomputing.files(house, name, profile).values()) for name in stale}


def drawn(notebook):
    """The stamps of its pictures, by figure."""
    return {target.split("-")[1]: stamps[target] for target in freshness.pictures(house, notebook)}


rule site:
    input:
        site_stamp,


rule figures:
    input:
        list(stamps.values()),


for notebook in names:
    missing = {figure: stamp for figure, stamp in drawn(notebook).items() if not stamp.is_file()}

    if notebook in stale:  # its kernel draws every picture

        rule:
            name:
                f"notebook_{notebook}"
            input:
                # a piece's key is in its path, so only its being there matters
                ancient(pieces[notebook]),
            output:
                stamps[notebook],
                list(drawn(notebook).values()),
            params:
                notebook=notebook,
            shell:
                f"{command} run {{params.notebook}} --profile {profile}"

    elif missing:  # no kernel: what is out of date is drawn again

        rule:
            name:
                f"pictures_{notebook}"
            output:
                list(missing.values()),
            params:
                figures=[f"{notebook}/{figure}" for figure in missing],
            shell:
                f"{command} draw {{params.figures}} --profile {profile}"


rule piece:
    output:
        house.build(profile).pieces / "{notebook}.{key}" / "{piece}.npz",
    wildcard_constraints:
        notebook=r"\w+",
        key=r"[0-9a-f]+",
        piece=r"[^/]+",
    shell:
        f"{command} piece {{wildcards.notebook}} {{wildcards.piece}} --profile {profile}"


rule book:
    input:
        # the book's key holds theirs, so only their being there matters, not which file is younger
        ancient(list(stamps.values())),
    output:
        site_stamp,
    shell:
        f"{command} book --profile {profile}"
