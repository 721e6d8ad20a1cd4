"""Names of hosts and users in lists (`host[1-3]`, `~host`, `host+2`, `host!`, groups, wildcards), and address ranges."""

import re

from config.model.problems import Place, Problems
from config.values import values as v
from config.values.fields import shortened

HOST_KEYWORDS = frozenset(("all", "others", "none", "default", "allremote", "localhost"))
MOST_HOSTS = 100_000

_RANGE = re.compile(r"([^\[\]]*)\[([0-9,\s-]+)\]([^\[\]]*)")


def expand(text: str) -> tuple[str, ...]:
    """`node[1-3,7]` -> node1 node2 node3 node7, `node[08-10]` keeps its zeros; ValueError if it makes no sense."""
    match = _RANGE.fullmatch(text)
    if not match:
        if "[" in text or "]" in text:
            raise ValueError(f"'{text}' is not name[first-last,…]")
        return (text,)
    before, ranges, after = match.groups()
    found: list[str] = []
    for part in ranges.replace(" ", "").split(","):
        numbers = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if not numbers:
            raise ValueError(f"'{text}' is not name[first-last,…]")
        first, last = numbers.group(1), numbers.group(2) or numbers.group(1)
        if int(last) < int(first) or int(last) - int(first) >= MOST_HOSTS - len(found):
            raise ValueError(f"'{text}': {first} to {last} is not a range that can be taken")
        width = len(first) if first.startswith("0") else 0
        found += [f"{before}{number:0{width}d}{after}" for number in range(int(first), int(last) + 1)]
    return tuple(found)


def host_names(text: str, place: Place, problems: Problems) -> tuple[str, ...]:
    """The host names of one cell; reports and gives () where there is none that can be."""
    try:
        found = expand(text)
    except ValueError as wrong:
        problems.error(place, shortened(str(wrong)))
        return ()
    for name in found:
        if not re.fullmatch(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253})", name):
            problems.error(place, f"'{shortened(name)}' is not a host name")
            return ()
    return found


def expand_all(words: tuple[str, ...]) -> tuple[str, ...]:
    """Each word expanded where it has a range; a word that has none that can be taken stays."""
    found: list[str] = []
    for word in words:
        try:
            found += expand(word)
        except ValueError:
            found.append(word)
    return tuple(found)


def host_words(value: str, _: v.Scope) -> tuple[str, ...]:
    """The words of a HOSTS list: ``node[1-2]+3`` is two hosts."""
    return expand_all(tuple(value.split()))


def base_host(word: str) -> str:
    """`~host+2`, `host!`, `group/`, `all@cluster` -> the bare name."""
    return re.sub(r"\+[0-9]*$", "", word.lstrip("~").partition("@")[0]).rstrip("!/")


def unknown_hosts(words: tuple[str, ...], known: frozenset[str]) -> list[str]:
    """Those of a HOSTS list that are no host, group or keyword."""
    return [
        base
        for base in map(base_host, words)
        if base and base not in known and base.lower() not in HOST_KEYWORDS and "*" not in base
    ]


def check_cycles(groups: dict[str, tuple[str, ...]], places: dict[str, Place], what: str, problems: Problems) -> None:
    """Report every group that holds itself, by way of others or not."""
    safe: set[str] = set()
    for start in groups:
        path: list[str] = []
        stack = [(start, iter(groups[start]))]
        path.append(start)
        while stack:
            name, members = stack[-1]
            member = next((base_host(word) for word in members), None)
            if member is None:
                stack.pop()
                safe.add(path.pop())
            elif member in path:
                problems.error(places[name], f"{what} {name} holds itself through {member}")
                return
            elif member in groups and member not in safe:
                path.append(member)
                stack.append((member, iter(groups[member])))


def flat_members(name: str, groups: dict[str, tuple[str, ...]]) -> list[str]:
    """The members of a group with its groups opened; `~` words take away. Cycles end by themselves."""
    found: dict[str, None] = {}
    taken: set[str] = set()
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        group = waiting.pop()
        if group in seen:
            continue
        seen.add(group)
        for word in groups[group]:
            base = base_host(word)
            if word.startswith("~"):
                taken.add(base)
            elif base in groups:
                waiting.append(base)
            else:
                found.setdefault(base)
    return [member for member in found if member not in taken]


_ADDRESS_PART = re.compile(r"(\*|\d{1,3})(?:-(\*|\d{1,3}))?", re.ASCII)

AddressRange = list[tuple[int, int]]


def parse_addresses(word: str) -> AddressRange:
    """One range of LSF_HOST_ADDR_RANGE, the IPv4 addresses that hosts may join from; raises ValueError.

    Four numbers: ``*`` is any, ``a-b``, ``a-*`` and ``*-b`` a range; numbers left out at the end are any.
    """
    found = []
    for part in word.split("."):
        match = _ADDRESS_PART.fullmatch(part)
        low, high = match.groups() if match else ("256", None)
        least = 0 if low == "*" else int(low)
        most = 255 if "*" in (low if high is None else high,) else int(high if high is not None else low)
        if least > most or most > 255:
            raise ValueError(f"'{word[:50]}' is not a range of IPv4 addresses such as 10.1.*.1-20")
        found.append((least, most))
    if len(found) > 4:
        raise ValueError(f"'{word[:50]}' has more than four numbers")
    return found + [(0, 255)] * (4 - len(found))


def is_within(address: str, words: tuple[str, ...]) -> bool:
    """Whether an address is in one of the ranges."""
    numbers = address.removeprefix("::ffff:").split(".")
    if len(numbers) != 4 or not all(number.isascii() and number.isdigit() for number in numbers):
        return False
    return any(
        all(low <= int(one) <= high for one, (low, high) in zip(numbers, parse_addresses(word), strict=True)) for word in words
    )
