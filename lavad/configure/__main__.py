"""``python -m lavad.configure FOLDER [egroup]``: for badmin, what is wrong with the files as lavad reads them, as a JSON object.

`report` is the text of `badmin ckconfig`; `errors` and `warnings` say whether there are any. With the second word the site's
egroup is asked.
"""

from __future__ import annotations

import json
import sys

from config.model.problems import report
from config.programs.egroup import Egroup
from config.read.load import files_not_there, load, unknown_administrators
from lavad.configure.requirements import why_not
from proto.names import NoAnswer, find_user


def main(words: list[str]) -> int:
    """Exit 0, whatever the files say."""
    folder, *more = words
    loaded = load(folder, egroup_in=Egroup if more == ["egroup"] else None, grammar=why_not)
    problems = (
        *loaded.problems,
        *files_not_there(folder, loaded.config),
        *unknown_administrators(loaded.config, _is_user),
    )
    found = {"report": report(problems), "errors": loaded.has_errors, "warnings": loaded.has_warnings}
    print(json.dumps(found))  # noqa: T201
    return 0


def _is_user(name: str) -> bool:
    """Whether there is such a user, as far as is known."""
    try:
        return find_user(name) is not None
    except NoAnswer:
        return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
