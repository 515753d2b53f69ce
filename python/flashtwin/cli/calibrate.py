"""`flashtwin calibrate`, whose commands are in `calibrate_plan`, `calibrate_fit` and `calibrate_counters`."""

from . import calibrate_counters, calibrate_fit, calibrate_plan
from .commands import summary_of
from .forms import Commands, family


def add(commands: Commands) -> None:
    """Add the commands."""
    inner = family(
        commands,
        "calibrate",
        summary_of("calibrate"),
        """\
examples:
  flashtwin calibrate plan --target /dev/nvme0n1 -o plan
  sudo plan/run.sh
  flashtwin calibrate fit plan/results -o mydrive.toml --report fit.html
  flashtwin calibrate check mydrive.toml plan/results
""",
    )
    calibrate_plan.add(inner)
    calibrate_fit.add(inner)
    calibrate_counters.add(inner)
