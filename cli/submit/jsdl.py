"""Job descriptions in JSDL (``bsub -jsdl FILE``): the elements of GFD.56 that a batch system can follow, and LSF's own.

Rule: an element that cannot be followed is refused by its name, as an option would be.
"""

from __future__ import annotations

from cli.client.context import Fail
from cli.submit.script import command_line
from proto.options import DURATION, FLAG, OPTIONS, SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from cli.client.frames import Json
    from proto.options import Option

GROUPS = {
    "JobDefinition",
    "JobDescription",
    "JobIdentification",
    "Application",
    "POSIXApplication",
    "Resources",
    "CandidateHosts",
}
STANDARD = {option.jsdl: option for option in OPTIONS if option.jsdl}
LSF = {option.jsdl_lsf: option for option in OPTIONS if option.jsdl_lsf}
"""LSF's own elements, whose values are as the option takes them."""
RANGES = ("Exact", "LowerBoundedRange", "UpperBoundedRange", "LowerBound", "UpperBound")


def read_jsdl(name: str, text: str, strict: bool) -> dict[str, Json]:
    """Option names to values, with ``command``. ``strict``: LSF's own elements are refused."""
    from xml.etree import ElementTree

    if "<!" in text.replace("<!--", ""):
        raise Fail(f"{name}: a job description has no document type and no entities")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise Fail(f"{name}: no XML: {error}") from None
    if _local(root) != "JobDefinition":
        raise Fail(f"{name}: <{_local(root)}>: a job description begins with JobDefinition")
    reader = _Reader(name, strict)
    reader.walk(root)
    return reader.found()


class _Reader:
    """What has been read so far."""

    def __init__(self, name: str, strict: bool) -> None:
        self.name = name
        self.strict = strict
        self.values: dict[str, Json] = {}
        self.hosts: list[str] = []
        self.words: list[str] = []
        self.arguments: list[str] = []
        self.env: list[str] = []

    def walk(self, group: Element) -> None:
        for element in group:
            if not isinstance(element.tag, str):
                continue
            if _local(element) in GROUPS:
                self.walk(element)
            else:
                self._leaf(element, _local(element), (element.text or "").strip())

    def found(self) -> dict[str, Json]:
        if self.hosts:
            self.values["m"] = " ".join(self.hosts)
        if self.env:
            self.values["env"] = ", ".join(["all", *self.env])
        if self.arguments and not self.words:
            raise Fail(f"{self.name}: <Argument> without <Executable>")
        words = [*self.words, *self.arguments]
        return {**self.values, "command": command_line(words) if words else None}

    def _leaf(self, element: Element, tag: str, text: str) -> None:
        own = "lsf" in element.tag.partition("}")[0].lower()
        if own and self.strict:
            raise Fail(f"{self.name}: <{tag}> is an extension (-jsdl_strict)")
        option = STANDARD.get(tag) or (LSF.get(tag) if own else None)
        if option is not None and option.takes == FLAG:
            self.values[option.name] = text.lower() in ("true", "1", "y", "yes")
        elif option is not None:
            self.values[option.name] = self._standard(option, tag, text) if tag in STANDARD else text
        elif tag == "TotalCPUCount":
            self.values["n"] = self._range(element)
        elif tag == "HostName":
            self.hosts.append(text)
        elif tag == "Executable":
            self.words = [text]
        elif tag == "Argument":
            self.arguments.append(element.text or "")
        elif tag == "Environment":
            self._variable(element)
        else:
            raise Fail(f"{self.name}: <{tag}> is not supported by lava")

    def _standard(self, option: Option, tag: str, text: str) -> str:
        """A standard element's value as the option takes it: its seconds in minutes, its bytes in KB."""
        if option.form == DURATION:
            return str(-(-self._number(tag, text) // 60))
        return f"{-(-self._number(tag, text) // 1024)}KB" if option.form == SIZE else text

    def _number(self, tag: str, text: str) -> int:
        whole = text.removesuffix(".0")
        if not (whole.isascii() and whole.isdigit() and len(whole) < 19):
            raise Fail(f"{self.name}: <{tag}>: {text[:80]}: not a number")
        return int(whole)

    def _range(self, element: Element) -> str:
        bounds = {_local(one): (one.text or "").strip() for one in element.iter() if isinstance(one.tag, str)}
        numbers = {tag: self._number(tag, bounds[tag]) for tag in RANGES if tag in bounds}
        if "Exact" in numbers:
            return str(numbers["Exact"])
        least = numbers.get("LowerBound", numbers.get("LowerBoundedRange"))
        most = numbers.get("UpperBound", numbers.get("UpperBoundedRange"))
        if least is None and most is None:
            raise Fail(f"{self.name}: <{_local(element)}>: it has no number")
        return f"{1 if least is None else least},{most}" if most is not None else str(least)

    def _variable(self, element: Element) -> None:
        name, value = element.get("name", ""), element.text or ""
        quote = "'" if "'" not in value else '"'
        if not name or quote in value:
            raise Fail(f"{self.name}: <Environment>: {name or 'a variable'} cannot be given")
        self.env.append(f"{name}={quote}{value}{quote}")


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]
