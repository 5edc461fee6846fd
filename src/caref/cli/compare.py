"""``caref compare``: is a difference real, and where does it come from?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from caref.cli import told_plainly
from caref.errors import CarefError

if TYPE_CHECKING:
    from caref.results.setting import Setting


@told_plainly
def compare(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER...", help="Runs, evaluations, or folders of either; a setting each."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="NAME", help="The reference, if it is not the first setting.")
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(help="Per-example values, separated by commas, such as accuracy,nbert,rouge_l."),
    ] = None,
    see: Annotated[
        float, typer.Option(metavar="POINTS", help="For how large a difference to count the splits needed.")
    ] = 1.0,
    common_splits: Annotated[
        bool,
        typer.Option("--common-splits", help="Leave out splits that a setting lacks, instead of stopping."),
    ] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="The CAREF paper's own table: which bold numbers survive?")
    ] = False,
    published: Annotated[
        Path | None,
        typer.Option(help="The same of a CSV file of your own."),
    ] = None,
    output: Annotated[
        Literal["text", "json", "csv", "markdown"], typer.Option("--format", help="How to print it.")
    ] = "text",
) -> None:
    """Compare settings on the same splits and examples.

    The first setting is the reference; a single folder's settings are compared with each other. Runs that
    differ in task and seed alone are a setting. Every difference comes with a 95 % interval over splits and
    examples, a test over examples, a test over splits, and Holm's correction over the settings; three or more
    are ranked.

    A difference in nBERT is split into its accuracy part and its explanation part. Where the reference has
    values after temperature scaling, calibration is compared with these as well.

    A published table has no splits to pair by: its bold numbers are tested from means and deviations. Its
    file has the columns block, model, task, value, mean, std, n and bold.
    """
    if paper or published is not None:
        if folders or (paper and published is not None):
            raise CarefError("give folders, --paper or --published, one of them")
        from caref.cli.published import print_published
        from caref.results.published import paper_table, read_published

        print_published(paper_table() if published is None else read_published(published), output)
        return
    if not folders:
        raise CarefError("nothing to compare; give folders of runs or evaluations, or --paper")
    if not see > 0:
        raise CarefError(f"--see must be a difference above 0, got {see:g}")
    from caref.cli.comparisons import Compared, print_compared
    from caref.experiments.spec import read_run_spec
    from caref.results.comparison import chosen_values
    from caref.results.comparison import compare as compare_settings
    from caref.results.factors import decomposed
    from caref.results.ranking import rankings
    from caref.results.sources import on_common_splits, read_settings

    settings = read_settings(folders, lambda run: read_run_spec(run).setting_id)
    left_out = 0
    if common_splits:
        settings, left_out = on_common_splits(settings)
    names = None if values is None else [name for each in values.split(",") if (name := each.strip())]
    reference, others = _reference(settings, against)
    chosen = chosen_values(settings, names)
    compared = Compared(
        comparisons=compare_settings(reference, others, chosen, see=see),
        decomposed=decomposed(reference, others) if names is None or "nbert" in names else [],
        rankings=rankings([reference, *others], chosen) if len(others) > 1 else [],
        see=see,
        splits_left_out=left_out,
    )
    print_compared(compared, output)


def _reference(settings: Sequence[Setting], against: str | None) -> tuple[Setting, list[Setting]]:
    names = [setting.name for setting in settings]
    if len(settings) < 2:
        raise CarefError(f"one setting alone, {names[0]}; give another folder, or one with several settings")
    if against is not None and against not in names:
        raise CarefError(f"--against {against}: the settings are {', '.join(names)}")
    place = 0 if against is None else names.index(against)
    return settings[place], [*settings[:place], *settings[place + 1 :]]
