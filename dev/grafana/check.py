"""Checks dashboards against the types of Grafana's foundation SDK.

The SDK reads what it knows and drops the rest, and it does not look at values. So a dashboard is read and written again: what is
lost was unknown. And every value is compared with the type that the SDK declares for it.
"""

import enum
import json
import sys
import types
import typing

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model


def lost(before, after, path):
    """What was there before and is not now."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from lost(value, after[key], [*path, key])
            elif value is not None:
                yield [*path, key], "is not known"
    elif isinstance(before, list) and isinstance(after, list):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost(one, other, [*path, str(index)])
    elif before != after:
        yield path, f"{before!r} is read as {after!r}"


def fits(value, hint):
    """Whether a value is of a declared type; objects of the SDK are looked into by `wrong`."""
    origin = typing.get_origin(hint)
    if hint in (typing.Any, object):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in typing.get_args(hint))
    if origin is list:
        return isinstance(value, list) and all(fits(one, typing.get_args(hint)[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict)
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return value in [one.value for one in hint] or isinstance(value, hint)
    # What plugins bring is an interface, or an object that was read already.
    return isinstance(value, hint) if isinstance(hint, type) else True


def wrong(value, path):
    """Values that are not of the type that the SDK declares."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from wrong(one, [*path, str(index)])
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from wrong(one, [*path, key])
    elif type(value).__module__.startswith("grafana_foundation_sdk") and not isinstance(value, enum.Enum):
        module = vars(sys.modules[type(value).__module__])
        for name, hint in typing.get_type_hints(type(value), module).items():
            one = getattr(value, name, None)
            key = "".join(word.title() if index else word for index, word in enumerate(name.split("_")))
            if one is not None and not fits(one, hint):
                yield [*path, key], f"{one!r} is not {hint}"
            yield from wrong(one, [*path, key])


def main():
    plugins.register_default_plugins()
    status = 0
    for file in sys.argv[1:]:
        with open(file, encoding="utf-8") as text:
            before = json.load(text)
        read = model.Dashboard.from_json(before)
        after = json.loads(json.dumps(read, cls=JSONEncoder))
        for path, what in [*lost(before, after, []), *wrong(read, [])]:
            print(f"{file}: {'.'.join(path)}: {what}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
