"""Arguments that select a placement scheme or a victim rule: included ones, and classes of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import FlashtwinError
from ..user_policy import is_in_file, load
from .user import Placement, Victim

#: A scheme or rule: its name, a class of the user, an instance of such a class, or FILE.py:CLASS.
SchemeLike: TypeAlias = str | type[Placement] | Placement
VictimLike: TypeAlias = str | type[Victim] | Victim


@dataclass(frozen=True)
class Rule:
    """A scheme or rule: its label, the setup words that select it, and a function.

    The function creates an object of the user's class. It is None for an included scheme or rule.
    """

    label: str
    words: dict[str, str]
    factory: Callable[[], object] | None = None

    def make(self) -> object | None:
        """Return a new object of the user's class; None for an included scheme or rule."""
        return None if self.factory is None else self.factory()


def split_rules(text: str) -> list[str]:
    """Split a list of rules at semicolons, or at commas if it has neither semicolons nor parameters."""
    separator = ";" if ";" in text or "=" in text else ","
    return [part.strip() for part in text.split(separator) if part.strip()]


def _parameters(text: str) -> tuple[str, dict[str, str]]:
    """Split "name:key=value,key=value" into the name and its parameters.

    A part without "=" belongs to the value of the previous part.
    """
    name, _, rest = text.partition(":")
    found: dict[str, str] = {}
    last = None
    for part in rest.split(",") if rest else []:
        key, is_pair, value = part.partition("=")
        if is_pair:
            found[key.strip()], last = value.strip(), key.strip()
        elif last is not None:
            found[last] += f",{part.strip()}"
        else:
            raise FlashtwinError(f'{text}: found "{part}"; must be KEY=VALUE')
    return name.strip(), found


def _own(found: object, base: type, what: str) -> Rule | None:
    """Read a user's scheme or rule (class, instance or FILE.py:CLASS). Return None for other arguments."""
    if isinstance(found, str) and is_in_file(found):
        found = load(found, base, what)
    if isinstance(found, base):
        return Rule(type(found).__name__, {}, lambda: found)
    if isinstance(found, str):
        return None
    if not callable(found):
        raise FlashtwinError(f"{what} {found!r}: must be a name, or a subclass of flashtwin.{base.__name__}")
    factory = found

    def make() -> object:
        made = factory()
        if not isinstance(made, base):
            raise FlashtwinError(f"{what}: made {made!r}, which is not a flashtwin.{base.__name__}")
        return made

    return Rule(getattr(found, "__name__", what), {}, make)


def scheme_of(scheme: SchemeLike) -> Rule:
    """Read a scheme."""
    own = _own(scheme, Placement, "scheme")
    if own is not None:
        return own
    name, parameters = _parameters(str(scheme))
    return Rule(str(scheme), {"scheme": name, **parameters})


def victim_of(victim: VictimLike) -> Rule:
    """Read a victim rule with its scope."""
    own = _own(victim, Victim, "victim")
    if own is not None:
        return own
    rule, at, scope = str(victim).partition("@")
    name, parameters = _parameters(rule)
    found = {"victim": name, **parameters}
    if at:
        scope_name, of_scope = _parameters(scope)
        found |= {"scope": scope_name, **of_scope}
    return Rule(str(victim), found)


@dataclass(frozen=True)
class Rules:
    """The scheme and the victim rule of a run. None stands for the scheme or rule of the device file."""

    scheme: Rule | None
    victim: Rule | None

    @staticmethod
    def read(scheme: SchemeLike | None, victim: VictimLike | None) -> Rules:
        """Read the placement scheme and the victim rule from the two arguments."""
        return Rules(
            None if scheme is None else scheme_of(scheme),
            None if victim is None else victim_of(victim),
        )

    @property
    def settings(self) -> dict[str, str]:
        """Return the keys of a device file that select the included rules."""
        sections = [("placement", self.scheme), ("gc", self.victim)]
        return {
            f"{section}.{word}": value
            for section, rule in sections
            if rule is not None
            for word, value in rule.words.items()
        }

    @property
    def are_own(self) -> bool:
        """Whether the scheme or the victim rule is a class of the user."""
        return any(rule is not None and rule.factory is not None for rule in (self.scheme, self.victim))

    def make(self) -> tuple[object | None, object | None]:
        """Return the user's scheme and victim rule for one device; None for each that is included."""
        scheme, victim = self.scheme, self.victim
        return scheme.make() if scheme else None, victim.make() if victim else None


#: The rules of the device.
OF_DEVICE = Rules(None, None)
