"""An option of a TFLite operator is read by its converter, or named in unread_options.def with the reason."""

import re
import unittest
from pathlib import Path

ROOM = Path(__file__).resolve().parents[2] / "compiler/frontend/tflite"


def tables():
    """Fields by table."""
    text = (ROOM / "options.def").read_text(encoding="utf-8")
    rows = re.split(r"^TFL_OPTIONS\(", text, flags=re.MULTILINE)[1:]
    return {row.split(",", 1)[0]: re.findall(r"TFL_FIELD\([^,]+, (\w+)\)", row) for row in rows}


def unread():
    text = (ROOM / "unread_options.def").read_text(encoding="utf-8")
    return set(re.findall(r'^TFL_UNREAD\((\w+), (\w+), "[^"]+"\)$', text, flags=re.MULTILINE))


def reads(fields, skipped, texts):
    """Fields that no file which takes the table reads."""
    return [f for f in fields if f not in skipped and not any(re.search(rf"\.{f}\b", text) for text in texts)]


class TfliteOptions(unittest.TestCase):
    def test_every_option_is_read_or_named(self):
        sources = [p.read_text(encoding="utf-8") for p in sorted((ROOM / "converters").glob("*.cc"))]
        taken = {name for text in sources for name in re.findall(r"options<(\w+)>\(\)", text)}
        known, named = tables(), unread()
        self.assertGreater(len(taken), 20)
        self.assertLessEqual(taken, set(known))
        for table in sorted(taken):
            skipped = {field for other, field in named if other == table}
            texts = [text for text in sources if f"options<{table}>" in text]
            self.assertEqual(reads(known[table], skipped, texts), [], f"options of {table} that no converter reads")

    def test_what_is_named_is_there(self):
        known = tables()
        for table, field in unread():
            self.assertIn(field, known.get(table, []), table)

    def test_finds_what_is_not_read(self):
        self.assertEqual(reads(["padding", "stride_w"], set(), ["options.padding"]), ["stride_w"])
        self.assertEqual(reads(["padding", "stride_w"], {"stride_w"}, ["options.padding"]), [])


if __name__ == "__main__":
    unittest.main()
