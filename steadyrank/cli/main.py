"""`steadyrank`: gathers the verbs and turns errors into one sentence and an exit code.

0 ok, 1 the run failed, 2 the user's input is wrong. A mistake of the user never shows a traceback; a bug of ours does.
"""

from __future__ import annotations

import errno
import sys

import typer

import steadyrank
from steadyrank.cli import audit, bench, compare, data, demo, evaluate, experiment, judge, report, score, train
from steadyrank.cli.output import fail
from steadyrank.errors import SteadyrankError

app = typer.Typer(
    name="steadyrank",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train compact text rerankers, prove how good they are, and prove that decisions on their scores hold still.",
)
app.command("demo")(demo.demo)
app.add_typer(data.app, name="data")
app.command("score")(score.score)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("audit")(audit.audit)
app.add_typer(judge.app, name="judge")
app.command("experiment")(experiment.experiment)
app.command("report")(report.report)
app.command("bench")(bench.bench)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"steadyrank {steadyrank.__version__}")
        raise typer.Exit


@app.callback()
def main(version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version.")) -> None:
    """Options that stand before the verb."""


def run() -> None:
    """The console script."""
    try:
        app()
    except SteadyrankError as error:
        sys.exit(fail(str(error), error.exit_code))
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != 130:  # typer's code for an interrupt, of which it says nothing
            raise
        sys.exit(fail("interrupted; what was finished is on disk, and the same command goes on from there", 1))
    except BrokenPipeError:  # `steadyrank ... | head`
        sys.stderr.close()
        sys.exit(0)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        sys.exit(fail(f"{error.filename}: {(error.strerror or 'cannot be read').lower()}; give another path", 2))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.exit(
            fail(f"no space left on the device while writing {error.filename or 'a result'}; free some and run the same command again", 1)
        )
