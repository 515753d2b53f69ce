"""Closed forms, computed before a run or compared with it (docs/theory.md).

`conditions` checks the assumptions about a device and a load. `forms` computes the closed forms of a device
and a load. `beside` compares them with a run.
"""

from .beside import Beside, beside_run
from .forms import Form, Theory, theory

__all__ = ["Beside", "Form", "Theory", "beside_run", "theory"]
