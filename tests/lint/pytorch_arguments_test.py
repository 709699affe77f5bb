"""An argument of an operator of PyTorch is read by its converter, or marked as meaning nothing; each operator has a case."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "compiler/frontend/pytorch"
sys.path.insert(0, str(ROOT / "tests/fixtures/pytorch_ops"))

import torch_cases  # noqa: E402

ROW = re.compile(r'^PT_OP\("([^"]+)", "([^"]*)", (\w+)\)$', re.MULTILINE)


def rows():
    """Target, arguments that are read, converter."""
    text = (ROOM / "aten_ops.def").read_text(encoding="utf-8")
    return [(target, [word.split("=")[0] for word in words.split() if not word.startswith("~")], converter)
            for target, words, converter in ROW.findall(text)]


def quoted(text):
    return set(re.findall(r'"(\w+)"', text))


def unread(arguments, texts):
    return [name for name in arguments if name not in quoted(texts)]


def covered():
    """Targets in the cases, and those that networks or other fixtures hold."""
    cases = " ".join(case for family in torch_cases.FAMILIES.values() for case in family())
    return {name.removeprefix("torch.ops.") for name in re.findall(r"(?:aten|torch\.ops\.quantized_decomposed|torch\.ops\.torchvision)\.\w+\.\w+", cases)}


class PytorchArguments(unittest.TestCase):
    def test_every_argument_is_read_or_marked(self):
        sources = {p.stem: p.read_text(encoding="utf-8") for p in sorted((ROOM / "converters").glob("*.cc"))}
        table = rows()
        self.assertGreater(len(table), 500)
        for target, arguments, converter in table:
            homes = [text for text in sources.values() if f"void {converter}(NodeContext" in text]
            self.assertEqual(len(homes), 1, converter)
            self.assertEqual(unread(arguments, homes[0] + sources["helpers"]), [], f"arguments of {target} that {converter} does not read")

    def test_targets_stand_once(self):
        targets = [target for target, _, _ in rows()]
        self.assertEqual(len(targets), len(set(targets)))

    def test_every_operator_has_a_case(self):
        there = covered()
        # Numbers, checks and graphs within nodes are in networks (pytorch_nets); lstsq, which torch does not export, in pytorch_script.
        rest = [target for target, _, converter in rows()
                if target not in there and target.startswith(("aten.", "quantized_decomposed.", "torchvision."))
                and converter not in ("convert_nothing", "convert_sym_size", "convert_item", "convert_lstsq")]
        self.assertEqual(rest, [])

    def test_finds_what_is_not_read(self):
        self.assertEqual(unread(["self", "alpha"], 'node.tensor("self")'), ["alpha"])


if __name__ == "__main__":
    unittest.main()
