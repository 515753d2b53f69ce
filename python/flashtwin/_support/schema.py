"""Checks that a JSON value has a declared type, such as a TypedDict, a list, a text or a number."""

from __future__ import annotations

import types
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from ..errors import FlashtwinError

#: Smallest and largest absolute value of numbers other than 0. Within these bounds, no product or quotient of
#: a few numbers overflows.
LEAST, MOST = 1e-30, float(2**64)
#: Depth of values without a declared type.
_DEPTH_MAX = 20
_NAMES = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


def check(value: object, kind: Any, at: str) -> None:  # noqa: ANN401 (types have no common one)
    """Check the type of a JSON value. Keys of an object that its TypedDict does not declare are ignored.

    Args:
        value: the value, as `json.loads` returned it.
        kind: str, bool, int (0 or more), float, `T | None`, list[T], dict[str, T], a tuple of fixed length, a
            TypedDict, or object for any value of limited depth.
        at: position of the value, for messages.

    Raises:
        FlashtwinError: a key is missing, or a value has another type or is out of bounds.
    """
    if kind is object:
        _check_any(value, at, 0)
    elif isinstance(kind, types.UnionType):
        present = [each for each in get_args(kind) if each is not types.NoneType]
        if value is not None:
            check(value, present[0], at)
    elif is_typeddict(kind):
        _check_table(value, kind, at)
    elif get_origin(kind) is list:
        for i, each in enumerate(_of_type(value, list, at)):
            check(each, get_args(kind)[0], f"{at}[{i}]")
    elif get_origin(kind) is dict:
        for key, each in _of_type(value, dict, at).items():
            _check_scalar(key, at)
            check(each, get_args(kind)[1], f"{at}.{shortened(key)}")
    elif get_origin(kind) is tuple:
        of, given = get_args(kind), _of_type(value, list, at)
        if len(given) != len(of):
            raise FlashtwinError(f"{at}: has {len(given)} values; must have {len(of)}")
        for i, (each, inner) in enumerate(zip(given, of, strict=True)):
            check(each, inner, f"{at}[{i}]")
    else:
        _check_scalar(_of_type(value, kind, at), at)


def _check_table(value: Any, kind: Any, at: str) -> None:  # noqa: ANN401
    _of_type(value, dict, at)
    for key, inner in get_type_hints(kind).items():
        if key not in value:
            if key in kind.__optional_keys__:
                continue
            raise FlashtwinError(f"{at}: {key} is missing")
        check(value[key], inner, f"{at}.{key}")


def _check_any(value: object, at: str, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise FlashtwinError(f"{at}: is nested more than {_DEPTH_MAX} deep")
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            _check_any(each, at, depth + 1)
        for key in value if isinstance(value, dict) else ():
            _check_scalar(key, at)
    else:
        _check_scalar(value, at)


def _of_type(value: object, kind: type, at: str) -> Any:  # noqa: ANN401
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise FlashtwinError(f"{at}: {_found(value)}; must be {_NAMES[kind]}")
    if kind is int and value < 0:  # type: ignore[operator]
        raise FlashtwinError(f"{at}: {_found(value)}; must be a whole number from 0")
    return value


def _check_scalar(value: object, at: str) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise FlashtwinError(f"{at}: {_found(value)}; must be text of whole characters") from None
    elif isinstance(value, (int, float)) and not (value == 0 or LEAST <= abs(value) <= MOST):
        # NaN fails this comparison, too. True and false pass it as 1 and 0.
        raise FlashtwinError(
            f"{at}: {_found(value)}; must be 0, or from {LEAST:g} to {MOST:g} without its sign"
        )


def _found(value: object) -> str:
    if isinstance(value, (dict, list)):
        return f"found {'a table' if isinstance(value, dict) else 'a list'}"
    return f"found {shortened(value)}"


def shortened(value: object) -> str:
    """Format a value for a message, shortened if it is long or deeply nested."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "a value of great length"
    return text if len(text) <= 60 else f"{text[:57]}..."
