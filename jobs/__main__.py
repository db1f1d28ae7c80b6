"""The `stopgap` command: one verb per thing a person does. `python -m jobs` is the same."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from engine.errors import RunError, StopgapError

VERBS = {
    "index": "jobs.index:index",
    "run": "jobs.run:run",
    "show": "jobs.show:show",
    "report": "jobs.report:report",
    "truncate": "jobs.truncate:truncate",
    "rollouts": "jobs.rollouts:rollouts",
    "audit": "jobs.audit:audit",
    "calibrate": "jobs.calibrate:calibrate",
    "replay": "jobs.replay:replay",
    "serve": "jobs.serve:serve",
    "doctor": "jobs.doctor:doctor",
    "bench": "jobs.bench:bench",
}


class Verbs(click.Group):
    """Finds each verb in its own file, imported only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order of a first acquaintance."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, or None."""
        if cmd_name not in VERBS:
            return None
        module, name = VERBS[cmd_name].split(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stopgap")
def cli() -> None:
    """When to stop searching, what is still missing, how much to read - and what those decisions cost.

    Start with `stopgap run configs/quickstart.yaml`. Every verb has a page: `stopgap VERB --help`.
    Exit codes: 0 done, 1 the run broke off, 2 something needs your correction, 130 interrupted.
    """


def main() -> None:
    """Runs the command line; a user's mistake is one line on standard error, without a traceback."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        page = f"; see `{error.ctx.command_path} --help`" if isinstance(error, click.UsageError) and error.ctx else ""
        print(f"stopgap: error: {error.format_message().rstrip('.')}{page}", file=sys.stderr)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        print("stopgap: interrupted; what is committed stays, the same command goes on from there", file=sys.stderr)
        sys.exit(130)
    except StopgapError as error:
        print(f"stopgap: error: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, RunError) else 2)


if __name__ == "__main__":
    main()
