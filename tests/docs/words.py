"""Words that the documents do without, since another is the field's own; code is left as it is."""

import re

# The word -> what to say in its place.
WORDS = {
    r"counted ax(?:is|es)": "data-dependent dim", r"told": "statically known, said, shown", r"as_run|of_run": "run-time value",
    r"rooms?|wish(?:es)?": "capacity, upper bound; a folder", r"samples?|chances?": "example, measurement",
    r"kept": "stored, retained", r"tied|spread|asked|truths?": "unified, broadcast, requested", r"special plans?|goes first": "guarded specialization",
    r"turns?|away|quiet|apart": "lease, in flight, idle, isolated",
}
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|\{ #[^}]*\}")


def words_of(markdown):
    """'word: what to say' for each that stands in the text."""
    text = _CODE.sub(" ", _FENCE.sub("", markdown))
    found = []
    for pattern, better in WORDS.items():
        # What a file's ending follows is its name.
        for match in re.finditer(rf"\b(?:{pattern})\b(?!\.\w)", text, re.IGNORECASE):
            around = " ".join(text[max(0, match.start() - 40):match.end() + 30].split())
            found.append(f"{match.group(0)} ({better}): … {around} …")
    return found
